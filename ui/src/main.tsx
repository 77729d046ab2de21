import { render } from "preact";
import { boot } from "./boot";
import { followTheme, followUrl } from "./state";
import { App } from "./views/app";
import "./style.css";

followTheme();
const root = document.getElementById("app")!;
root.replaceChildren();  // a page that the browser saved holds what it showed
render(<App />, root);
void boot().then(followUrl);
