import {
  GetScriptResponseSchema,
  type Script,
  Script_Origin,
  ScriptSchema,
  ScriptService,
} from "../../../../contract/millwright/v1/script_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printableLines } from "../../terminal/printable.ts";
import { printList, printOne } from "../../terminal/printing.ts";

const originOf = ({ origin }: Script): string => (origin === Script_Origin.SITE ? "site" : "shipped");

const columns: readonly Column<Script>[] = [
  { title: "REF", cell: ({ ref }) => ref },
  { title: "ORIGIN", cell: originOf },
  { title: "DIGEST", cell: ({ digest }) => digest.slice(0, 19), plain: ({ digest }) => digest },
  { title: "PLANS", cell: ({ planIds }) => planIds.join(" ") },
  { title: "DESCRIPTION", cell: ({ description }) => description },
];

export async function listScripts(session: Session): Promise<undefined> {
  const client = await session.client(ScriptService);
  const { scripts: items } = await client.listScripts({}, { signal: session.signal });
  await printList(session, { items, columns, json: (script) => jsonOf(ScriptSchema, script) }, "No scripts.");
}

export async function showScript(session: Session, ref: string): Promise<undefined> {
  const client = await session.client(ScriptService);
  const answer = await client.getScript({ ref }, { signal: session.signal });
  const { script, text } = answer;
  if (!script) throw new Error("the server answered without the script");
  await printOne(session, {
    item: script,
    columns,
    json: () => jsonOf(GetScriptResponseSchema, answer),
    details: [
      ["Script", script.ref, "bold"],
      ["Does", script.description],
      ["Variables", script.variables],
      ["Origin", originOf(script)],
      ["Digest", script.digest],
      ["Size", `${script.sizeBytes} bytes`],
      ["Plans", script.planIds.join(", ")],
    ],
    sections: [{ title: "Text", body: `${printableLines(text.trimEnd())}\n` }],
  });
}
