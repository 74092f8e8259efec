"""`python -m toprank` is the command `toprank`."""

from .cli import main

if __name__ == "__main__":
    main()
