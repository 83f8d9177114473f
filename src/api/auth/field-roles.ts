import { isFieldSet, type Message } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { callerKey } from "../transport/interceptors.ts";
import type { Access } from "./access.ts";

/** Denies requests that set a field whose row in the table of roles the caller does not meet. For methods of one request each. */
export function createFieldRoles(access: Pick<Access, "authorize" | "fieldsOf">): Interceptor {
  return (next) => (request) => {
    const method = `${request.service.typeName}/${request.method.name}`;
    if (!request.stream)
      for (const name of access.fieldsOf(method)) {
        const field = request.method.input.fields.find((each) => each.name === name);
        if (!field) throw new Error(`${method} has no field ${name}, and a row in the table of roles names it`);
        if (isFieldSet(request.message as Message, field))
          access.authorize(request.contextValues.get(callerKey), `${method} ${name}`);
      }
    return next(request);
  };
}
