"""A video with the model's mind beside it: the page, as a file and, by `wtal.serve`, live."""
