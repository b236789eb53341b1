"""To and from the files of other tools. Nobody else depends on what is here, but for training, which word vectors may start."""
