import { Code } from "@connectrpc/connect";
import { ERROR_CODES, grpcCodeOf } from "../../src/api/error-codes.ts";
import { ERROR_KINDS } from "../../src/kernel/errors.ts";
import { code, page, pageHead, table } from "./markdown.ts";

/** gRPC's own spelling: `INVALID_ARGUMENT`, and `CANCELLED` with two l. */
function grpcName(value: Code): string {
  if (value === Code.Canceled) return code("CANCELLED");
  return code((Code[value] ?? "").replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase());
}

/** Every way in which a request can fail, on every surface. */
export function errorsPage(): string {
  const rows = ERROR_KINDS.map((kind) => {
    const { grpc, http, meaning, caller } = ERROR_CODES[kind];
    return [code(kind), grpcName(grpc), grpcName(grpcCodeOf(kind, "forge")), String(http), meaning, caller];
  });
  return page(
    pageHead("Errors", "`src/api/error-codes.ts`"),
    "Whatever the surface, a request that is not carried out is answered with one of these kinds and a message that names the field, the rule and what to do next. Nothing is half done.",
    table(["Kind", "gRPC", "gRPC on `forge.Forge`", "HTTP (REST)", "Meaning", "What to do"], rows),
    "Over gRPC, gRPC-Web and Connect the error carries a detail of type `millwright.v1.ErrorInfo` with the kind, the field that is wrong and the command or call that helps next, where there are such. Over the Connect protocol the HTTP status follows from the gRPC code. REST answers have the same in JSON:",
    '```json\n{ "error": { "kind": "invalid_argument", "message": "…", "field": "…", "next": "…" } }\n```',
  );
}
