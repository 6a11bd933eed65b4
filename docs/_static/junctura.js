// A block that scrolls can be reached and moved by the keyboard.
const blocks = document.querySelectorAll("pre, .table-wrapper");
const update = () => {
  for (const block of blocks) {
    if (block.scrollWidth > block.clientWidth || block.scrollHeight > block.clientHeight) block.tabIndex = 0;
    else block.removeAttribute("tabindex");
  }
};
addEventListener("load", update);
addEventListener("resize", update);
update();
