"""`python -m eyeline` is the command `eyeline`."""

from eyeline.cli import main

if __name__ == "__main__":
    main()
