"""A video with the model's mind beside it: the page as a file, and, by `wtal.serve`, live."""

from wtal.view.page import shell, write_page

__all__ = ["shell", "write_page"]
