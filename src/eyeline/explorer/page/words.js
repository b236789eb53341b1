// Every word of the page, in each of its languages.

const WORDS = {
  en: {
    title: "attention explorer", language: "Language", theme: "Colours", auto: "as the system", light: "light", dark: "dark",
    source: "Source", target: "Output (empty: the model predicts it)", model: "Model", beside: "Beside it", none: "no second model",
    key: "API key", look: "Look", tree: "beam tree", link: "Copy link", copied: "Link copied", first: "First step", previous: "Previous step",
    play: "Play", pause: "Pause", next: "Next step", empty: "Type a source and press Enter: the output appears symbol by symbol, and each symbol shows where the model looked.",
    working: "Searching…", step: "Step {0} of {1}", output: "Output", released: "Let the model go on by itself",
    forced: "held by you", unfinished: "not finished: the longest length came first", blank: "Nothing but white space comes in, so nothing goes out; the model is not asked.",
    noSource: "There is no source yet: type one.", offline: "The service does not answer. Is it still running?", tooLarge: "too many heads to send together; each comes when chosen",
    layer: "Layer", head: "Head", mean: "mean of all heads", own: "its own attention", lookAt: "Attention shown",
    chosen_own: "the model's one attention over the source", chosen_kept: "the head that this run is set to show",
    chosen_informative: "the head whose look tells most about the step, on this pair; alignments with gold links choose one for good: eyeline align --best-head --keep",
    chosen_asked: "as chosen",
    stepTitle: "How symbol {0}, {1}, came about", scores: "scores", softmax: "softmax: weights", coverage: "looked at before this step",
    coverage_sum: "running sum of weights", coverage_fertility: "running sum by fertility", coverage_gated: "length of the coverage vector",
    states: "the source's states, weighted", headStates: "this head's values, weighted", context: "context: their sum", norm: "length {0}",
    kept: "{0} directions that hold {1} % of the states", combine: "combination", symbol: "next symbol", gate: "generate or copy", generate: "generate {0}",
    copy: "copy {0}", fromSource: "copied", noScores: "A mean of heads has no scores and no one context.", points: "Pointing", matrix: "Alignment matrix",
    matrixHelp: "Rows are output symbols, columns source symbols. Drag, or use the arrow keys.", matrixLabel: "Alignment of {0} output symbols over {1} source symbols",
    sourceSide: "source →", sourceSideBack: "← source", targetSide: "output ↓", table: "As a table", token: "source symbol", score: "score", weight: "weight", sum: "looked at before", copiedMass: "copied",
    candidate: "candidate", probability: "probability", steer: "Take {0} here ({1}); the rest is searched again", chosenNow: "taken",
    noAttention: "This model has no attention. All of the source reaches the decoder as one fixed vector, so there is no place to look at and nothing to draw here; what it says next is below.",
    fixedVector: "one fixed vector", decoder: "decoder state", treeTitle: "Beam tree: the hypotheses kept at each step", treeHelp: "Log-probabilities; the best way is dark, ■ is a finished output.", ended: "Finished outputs, best first", noTree: "A given output was not searched for, so there is no tree.",
    log: "log-probability {0}", looksAt: "looks most at {0} ({1})", pointsTo: "points at {0}", end: "the end",
    combine_seq2seq: "state s → W s", combine_bahdanau: "s′ = cell(s, [y; c]) → maxout(U [s′; c; y])", combine_luong: "tanh(W [c; s])",
    combine_pointer: "the weights are the answer", combine_pg: "V [s; c] + b, gate σ(w·[c; s; y])", combine_heads: "all heads side by side, W_O, and on through the layers",
  },
  ko: {
    title: "어텐션 탐색기", language: "언어", theme: "색", auto: "시스템 설정", light: "밝게", dark: "어둡게",
    source: "원문", target: "출력 (비워 두면 모델이 예측)", model: "모델", beside: "나란히 볼 모델", none: "없음",
    key: "API 키", look: "보기", tree: "빔 트리", link: "링크 복사", copied: "복사됨", first: "첫 단계", previous: "이전 단계",
    play: "재생", pause: "멈춤", next: "다음 단계", empty: "원문을 입력하고 Enter를 누르세요. 출력이 한 기호씩 나타나고, 기호마다 모델이 어디를 보았는지 보여 줍니다.",
    working: "탐색 중…", step: "{1}단계 중 {0}단계", output: "출력", released: "모델에 다시 맡기기",
    forced: "직접 고름", unfinished: "끝나지 않음: 최대 길이에 먼저 닿았습니다", blank: "공백만 입력되어 출력도 비어 있습니다. 모델에는 묻지 않았습니다.",
    noSource: "아직 원문이 없습니다. 입력해 주세요.", offline: "서비스가 응답하지 않습니다. 아직 실행 중인가요?", tooLarge: "헤드가 많아 한꺼번에 보내지 않습니다. 고르면 그때 가져옵니다",
    layer: "층", head: "헤드", mean: "모든 헤드의 평균", own: "자체 어텐션", lookAt: "보이는 어텐션",
    chosen_own: "원문에 대한 이 모델의 유일한 어텐션", chosen_kept: "이 실행이 보이도록 설정된 헤드",
    chosen_informative: "이 쌍에서 단계를 가장 잘 알려 주는 헤드. 정답 정렬이 있으면 eyeline align --best-head --keep 으로 정해 둘 수 있습니다",
    chosen_asked: "고른 헤드",
    stepTitle: "{0}번째 기호 {1}이(가) 나온 과정", scores: "점수", softmax: "소프트맥스: 가중치", coverage: "이 단계 전까지 본 양",
    coverage_sum: "가중치의 누적합", coverage_fertility: "산출력으로 나눈 누적합", coverage_gated: "커버리지 벡터의 길이",
    states: "가중치를 곱한 원문 상태", headStates: "가중치를 곱한 이 헤드의 값", context: "문맥 벡터: 그 합", norm: "길이 {0}",
    kept: "상태의 {1} %를 담은 {0}개 방향", combine: "결합", symbol: "다음 기호", gate: "생성 또는 복사", generate: "생성 {0}",
    copy: "복사 {0}", fromSource: "복사분", noScores: "헤드 평균에는 점수도 하나의 문맥 벡터도 없습니다.", points: "가리킨 위치", matrix: "정렬 행렬",
    matrixHelp: "행은 출력 기호, 열은 원문 기호입니다. 끌거나 화살표 키를 쓰세요.", matrixLabel: "원문 기호 {1}개에 대한 출력 기호 {0}개의 정렬",
    sourceSide: "원문 →", sourceSideBack: "← 원문", targetSide: "출력 ↓", table: "표로 보기", token: "원문 기호", score: "점수", weight: "가중치", sum: "이전까지 본 양", copiedMass: "복사",
    candidate: "후보", probability: "확률", steer: "여기서 {0} 선택 ({1}). 나머지는 다시 탐색합니다", chosenNow: "선택됨",
    noAttention: "이 모델에는 어텐션이 없습니다. 원문 전체가 하나의 고정 벡터로 디코더에 전달되므로 본 위치라는 것이 없고 여기에 그릴 것도 없습니다. 다음에 나올 기호는 아래에 있습니다.",
    fixedVector: "고정 벡터 하나", decoder: "디코더 상태", treeTitle: "빔 트리: 단계마다 남은 가설", treeHelp: "로그 확률. 가장 좋은 길이 진하고, ■는 끝난 출력입니다.", ended: "끝난 출력, 좋은 순서", noTree: "주어진 출력은 탐색한 것이 아니므로 트리가 없습니다.",
    log: "로그 확률 {0}", looksAt: "가장 많이 본 곳 {0} ({1})", pointsTo: "{0}을(를) 가리킴", end: "끝",
    combine_seq2seq: "상태 s → W s", combine_bahdanau: "s′ = 셀(s, [y; c]) → maxout(U [s′; c; y])", combine_luong: "tanh(W [c; s])",
    combine_pointer: "가중치가 곧 답", combine_pg: "V [s; c] + b, 게이트 σ(w·[c; s; y])", combine_heads: "모든 헤드를 이어 W_O로, 그리고 다음 층으로",
  },
};

let current = "en";

export function languages() {
  return Object.keys(WORDS);
}

export function speak(language) {
  current = language in WORDS ? language : "en";
  document.documentElement.lang = current;
  for (const node of document.querySelectorAll("[data-words]")) node.textContent = say(node.dataset.words);
  for (const node of document.querySelectorAll("[data-label]")) {
    node.setAttribute("aria-label", say(node.dataset.label));
    node.title = say(node.dataset.label);
  }
}

/** The words of a name, with values in the place of {0}, {1}, … */
export function say(name, ...values) {
  return WORDS[current][name].replace(/\{(\d)\}/g, (_, place) => String(values[Number(place)]));
}

/** A number as it is read: few digits, a true minus. */
export function number(value, digits = 2) {
  if (value === null || value === undefined) return "–";
  return value.toFixed(digits).replace("-", "−");
}

/** A probability: two digits, and more where it would read as none. */
export function probable(value) {
  if (value >= 0.005) return value.toFixed(value > 0.995 && value < 1 ? 4 : 2);
  return value < 0.0001 ? "<0.0001" : value.toPrecision(1);
}
