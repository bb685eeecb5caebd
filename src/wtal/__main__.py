"""`python -m wtal` is the command `wtal`."""

from wtal.cli import main

if __name__ == "__main__":
    main()
