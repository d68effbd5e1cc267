//! Plots (SVG) and the self-contained HTML report of gradus.
