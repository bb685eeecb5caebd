"""The page with the video, live: a small web server over finished runs."""
