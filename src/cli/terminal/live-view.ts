import type { Json } from "../client/proto-json.ts";
import type { Session } from "../client/session.ts";
import type { Style } from "./output.ts";
import { jsonText } from "./printable.ts";

/** Output that follows what happens. */
export interface LiveView {
  /** Shows the whole for the first time. */
  start(): Promise<void>;
  /** Something changed: a terminal is redrawn, other outputs get the line. */
  change(line: (style: Style) => Promise<string>): Promise<void>;
  /** Leaves the last state on the terminal. */
  stop(): Promise<void>;
}

/** Lines longer than the terminal must not wrap: the cursor could not be brought back to where they began. */
const NO_WRAP = "\u001b[?7l";
const WRAP = "\u001b[?7h";
const CLEAR_BELOW = "\u001b[0J";

type Render = (style: Style) => Promise<string>;

/** Ages grow while nothing happens. */
const REDRAW_EVERY_MS = 1_000;
/** A burst of changes is drawn once. */
const LEAST_BETWEEN_DRAWS_MS = 100;

/** On a terminal, the whole in place, redrawn; elsewhere the whole once, then a line for each change. */
export function createLiveView(session: Session, render: Render): LiveView {
  const { stdout } = session.terminal;
  const isLive = stdout.isTTY && session.style().format === "table";
  return isLive ? createRedrawnView(session, render) : createLineView(session, render);
}

function createLineView(session: Session, render: Render): LiveView {
  const { stdout } = session.terminal;
  return {
    async start() {
      const style = session.style();
      stdout.write(style.format === "json" ? await asLines(render, style) : await render(style));
    },
    async change(line) {
      stdout.write(await line(session.style()));
    },
    async stop() {},
  };
}

/** A JSON array as one line per element, so that the whole stream is one format. */
async function asLines(render: Render, style: Style): Promise<string> {
  const parsed: Json = JSON.parse(await render(style));
  return (Array.isArray(parsed) ? parsed : [parsed]).map((each) => `${jsonText(each)}\n`).join("");
}

function createRedrawnView(session: Session, render: Render): LiveView {
  const { stdout } = session.terminal;
  let drawnRows = 0;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let isDrawSoon = false;
  const draw = async () => {
    const text = await render(session.style());
    if (stopped) return;
    const lines = fitted(text, stdout.rows);
    const back = drawnRows === 0 ? "" : `\u001b[${drawnRows}A\r`;
    stdout.write(`${back}${CLEAR_BELOW}${NO_WRAP}${lines.map((line) => `${line}\n`).join("")}${WRAP}`);
    drawnRows = lines.length;
    isDrawSoon = false;
    schedule(REDRAW_EVERY_MS);
  };
  const schedule = (ms: number) => {
    clearTimeout(timer);
    // The next change or second draws again; what fails here fails there too, where somebody waits for it.
    if (!stopped) timer = setTimeout(() => void draw().catch(() => undefined), ms);
  };
  return {
    start: draw,
    async change() {
      // Not put off by further changes: a busy fleet would never be drawn.
      if (!isDrawSoon) schedule(LEAST_BETWEEN_DRAWS_MS);
      isDrawSoon = true;
    },
    async stop() {
      if (drawnRows > 0) await draw();
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/** What fits on the screen: one cannot redraw what has scrolled away. */
function fitted(text: string, rows: number | undefined): string[] {
  const lines = text.replace(/\n$/, "").split("\n");
  // Zero rows: a terminal that does not tell how tall it is.
  const room = (rows || 24) - 1;
  if (lines.length <= room) return lines;
  return [...lines.slice(0, room - 1), `… and ${lines.length - room + 1} more`];
}
