import { createAnswerReader } from "../transport/device-answer.ts";
import { isResource, type Resource } from "../transport/device-json.ts";
import { type Answer, excerpt, parseJson } from "../transport/http-answer.ts";

type Asked = Parameters<typeof failureOf>[0];

const { failureOf } = createAnswerReader({ saidBy, callerOf: () => ({ as: "the API key", showing: "" }) });

/** Lists, single values and plain text are answers of MAAS, too: they are members of their own. */
export interface MaasAnswer extends Resource {
  readonly value: unknown;
}

export function answerOf(asked: Asked, answer: Answer): MaasAnswer {
  const failure = failureOf(asked, answer);
  if (failure !== undefined) throw failure;
  if (answer.list !== undefined) return { value: answer.list };
  const parsed = parseJson(answer.text);
  return { value: parsed === undefined ? answer.text : parsed };
}

/** How far clocks may be apart without MAAS refusing what we sign. */
const NOTABLE_SKEW_MS = 60_000;

/** MAAS answers with text, or with a list of complaints for each field. */
function saidBy(asked: Parameters<Parameters<typeof createAnswerReader>[0]["saidBy"]>[0], answer: Answer): string {
  const body = parseJson(answer.text);
  const said = isResource(body)
    ? Object.entries(body)
        .map(([field, why]) => `${field}: ${Array.isArray(why) ? why.join(" ") : String(why)}`)
        .join("; ")
    : answer.text;
  return excerpt(asked, answer.status === 401 ? `${said}${skewOf(answer)}` : said);
}

/** A key is refused as well when the time that signed it is not MAAS's time. */
function skewOf({ headers: { date } }: Answer): string {
  const there = typeof date === "string" ? Date.parse(date) : Number.NaN;
  const apart = there - Date.now();
  if (Number.isNaN(apart) || Math.abs(apart) < NOTABLE_SKEW_MS) return "";
  return ` (the clock of MAAS is ${Math.round(Math.abs(apart) / 1_000)} s ${apart > 0 ? "ahead of" : "behind"} ours)`;
}
