import {
  AccessService,
  type CanIResponse,
  CanIResponseSchema,
  type GetMyAccessResponse,
  GetMyAccessResponseSchema,
} from "../../../../contract/millwright/v1/access_pb.js";
import { EXIT } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printOne } from "../../terminal/printing.ts";
import { thingOf } from "../event/kind.ts";
import { scopeText } from "../token/scope.ts";

const accessColumns: readonly Column<GetMyAccessResponse>[] = [
  { title: "NAME", cell: ({ name }) => name },
  { title: "ROLES", cell: ({ roles }) => roles.join(" ") },
  { title: "SCOPE", cell: ({ scope }) => scopeText(scope) },
  { title: "METHODS", cell: ({ methods }) => methods.join(" ") },
  { title: "ROUTES", cell: ({ routes }) => routes.join(" ") },
  { title: "FIELDS", cell: ({ fields }) => fields.join(" ") },
];

export async function showAccess(session: Session): Promise<undefined> {
  const client = await session.client(AccessService);
  const mine = await client.getMyAccess({}, { signal: session.signal });
  await printOne(session, {
    item: mine,
    columns: accessColumns,
    json: (item) => jsonOf(GetMyAccessResponseSchema, item),
    details: [
      ["You are", mine.name || "nobody in particular"],
      ["Your roles", mine.roles.join(", ") || "none"],
      ["Your scope", scopeText(mine.scope) || "not limited"],
      ...[...mine.methods, ...mine.fields, ...mine.routes].map(
        (name, at) => [at === 0 ? "You may call" : "", name] as const,
      ),
    ],
  });
}

const answerColumns: readonly Column<CanIResponse>[] = [
  { title: "METHOD", cell: ({ method }) => method },
  { title: "ALLOWED", cell: ({ allowed }) => (allowed ? "yes" : "no") },
  { title: "REASON", cell: ({ reason }) => reason },
];

export interface CanIOptions {
  readonly on?: readonly string[];
}

/** Exit code 5 for no, as a call would have. */
export async function canI(session: Session, words: readonly string[], { on = [] }: CanIOptions): Promise<number> {
  const things = on.map((text) => thingOf(text, "--on", "such as --on machine/m-1"));
  const client = await session.client(AccessService);
  const answer = await client.canI({ method: words.join(" "), on: things }, { signal: session.signal });
  await printOne(session, {
    item: answer,
    columns: answerColumns,
    json: (item) => jsonOf(CanIResponseSchema, item),
    details: [
      ["Method", answer.method],
      ["Allowed", answer.allowed ? "yes" : "no", answer.allowed ? undefined : "bad"],
      ["Why not", answer.reason],
      ["Next", answer.next],
    ],
  });
  return answer.allowed ? EXIT.ok : EXIT.denied;
}
