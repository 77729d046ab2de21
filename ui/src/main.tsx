import { render } from "preact";
import { boot } from "./boot";
import { followTheme, followUrl } from "./state";
import { App } from "./views/app";
import "./style.css";

followTheme();
render(<App />, document.getElementById("app")!);
void boot().then(followUrl);
