import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { create, toJsonString } from "@bufbuild/protobuf";
import classes from "./copy-button.module.css";
import { CopyButton } from "./copy-button.tsx";

export interface CopyableCall<M extends DescMethodUnary = DescMethodUnary> {
  /** As it is typed; empty where no command does it. */
  readonly cli: string;
  readonly method: M;
  readonly request: MessageInitShape<M["input"]>;
}

/** The same, for a terminal: what the console does, a script can do. */
export function CopyAs({ call }: { readonly call: CopyableCall }) {
  return (
    <span className={classes.copyAs}>
      {call.cli !== "" && <CopyButton label="copy as CLI" text={call.cli} />}
      <CopyButton label="copy as curl" text={curlOf(call)} />
    </span>
  );
}

function curlOf({ method, request }: CopyableCall): string {
  const body = toJsonString(method.input, create(method.input, request), { useProtoFieldName: true });
  const url = `${window.location.origin}/${method.parent.typeName}/${method.name}`;
  return [
    `curl -sS ${shellWord(url)}`,
    `-H "authorization: Bearer $MILLWRIGHT_TOKEN"`,
    `-H 'content-type: application/json'`,
    `-d ${shellWord(body)}`,
  ].join(" \\\n  ");
}

/** One word for a shell, whatever is in it. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
