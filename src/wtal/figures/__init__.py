"""What reports, the paper's tables and notebooks draw with: tables, plots, timelines, pages, one style."""
