"""`python -m fairpass` is the `fairpass` command."""

import os

from fairpass.cli import main
from fairpass.lifetime import STARTED_BY, end_with_parent

if __name__ == "__main__":
    if STARTED_BY in os.environ:  # before torch is imported, which takes seconds
        end_with_parent()
    main()
