// The cprof that served the page has ended, or cannot be reached: said once, above what still works.
import { useState } from "preact/hooks";
import { isGone, retry } from "../server";
import { S } from "../strings";

export function Gone() {
  const [tried, setTried] = useState("");
  if (!isGone.value) return <div />;
  const again = async () => {
    setTried(S.trying);
    const found = await retry();
    setTried(found === "gone" ? S.stillGone : found === "another" ? S.anotherServer : "");
  };
  return (
    <div class="bar banner notes">
      <span role="alert">{S.gone}</span>
      <button onClick={() => void again()}>Retry</button>
      <span role="status" class="answer">{tried}</span>
    </div>
  );
}
