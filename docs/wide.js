// Say above a table that it scrolls sideways, if it does: the theme wraps tables once the page is loaded.
"use strict";

function mark() {
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap"))
    wide.classList.toggle("scrolls", wide.scrollWidth > wide.clientWidth + 1);
}

addEventListener("load", mark);
addEventListener("resize", mark);
