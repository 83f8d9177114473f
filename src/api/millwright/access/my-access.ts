import type { ServiceImpl } from "@connectrpc/connect";
import type { AccessService } from "../../../../contract/millwright/v1/access_pb.js";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { outOfReach } from "../../../services/call/reach.ts";
import { expandRoles } from "../../../services/call/roles.ts";
import { type Access, isField } from "../../auth/access.ts";
import { methodNamed } from "../../auth/named-method.ts";
import { callerKey } from "../../transport/interceptors.ts";
import { scopeMessage } from "../token-messages.ts";

/** What a key of the tables of roles is. */
const kindOf = (key: string): "routes" | "methods" | "fields" =>
  key.includes(" /") ? "routes" : isField(key) ? "fields" : "methods";

export const myAccess = (deps: ServiceDeps, access: Access): ServiceImpl<typeof AccessService> => ({
  getMyAccess(_request, { values }) {
    const caller = values.get(callerKey);
    const allowed = access.methods.filter((key) => !access.refusal(caller, key)).toSorted();
    const { methods = [], routes = [], fields = [] } = Object.groupBy(allowed, kindOf);
    return {
      name: caller.name ?? "",
      roles: [...new Set([...caller.roles, ...expandRoles(caller.roles)])],
      ...(caller.scope && { scope: scopeMessage(caller.scope) }),
      ...{ methods, routes, fields },
    };
  },
  async canI(request, { values }) {
    const method = methodNamed(access, request.method);
    // A field is set in a call of its method: both rows are asked.
    const rows = kindOf(method) === "fields" ? [method.split(" ", 1)[0] ?? "", method] : [method];
    const caller = values.get(callerKey);
    const [refused] = rows.flatMap((row) => access.refusal(caller, row) ?? []);
    const missing = refused ?? (await outOfReach(deps, caller, request.on));
    return {
      method,
      allowed: missing === undefined,
      reason: missing?.message ?? "",
      next: missing?.detail.next ?? "",
    };
  },
});
