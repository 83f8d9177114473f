import { Code } from "@connectrpc/connect";
import { ERROR_CODES, grpcCodeOf } from "../../src/api/transport/error-codes.ts";
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
    pageHead("Errors", "`src/api/transport/error-codes.ts`"),
    "Whatever the surface, a request that is not carried out is answered with one of these kinds and a message that names the field, the rule and what to do next. Nothing is half done.",
    table(["Kind", "gRPC", "gRPC on `forge.Forge`", "HTTP, for other paths", "Meaning", "What to do"], rows),
    "Over gRPC, gRPC-Web, Connect and JSON the error carries a detail of type `millwright.v1.ErrorInfo` with the kind, the field that is wrong and the command or call that helps next, where there are such. That holds also for requests that could not be read at all. Over Connect and JSON the HTTP status follows from the gRPC code, by the rules of the Connect protocol. A content type that the API does not know is answered with 415 alone; a method that it does not have, with `UNIMPLEMENTED` and its name over gRPC, and as an unknown path over HTTP.",
    "What is no call of the API (an unknown path, `/metrics` without a token) is answered with the status in that column and the same in JSON:",
    '```json\n{ "error": { "kind": "invalid_argument", "message": "…", "field": "…", "next": "…" } }\n```',
  );
}
