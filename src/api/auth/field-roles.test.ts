import { Code, ConnectError, createClient, createRouterTransport, type Interceptor } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { RackService } from "../../../contract/millwright/v1/rack_pb.js";
import { toConnectError } from "../transport/error-codes.ts";
import { callerKey } from "../transport/interceptors.ts";
import { createAccess } from "./access.ts";
import { createFieldRoles } from "./field-roles.ts";

const METHOD = "millwright.v1.RackService/StartRackMaintenance";
const access = createAccess([
  { group: null, roles: { [METHOD]: ["operator"], [`${METHOD} include_assigned`]: ["admin"] } },
]);

/** As every server does around its handlers. */
const mapErrors: Interceptor = (next) => async (request) => {
  try {
    return await next(request);
  } catch (error) {
    throw toConnectError(error, "millwright", () => "");
  }
};

function rackService(...roles: string[]) {
  const signIn: Interceptor = (next) => (request) => {
    request.contextValues.set(callerKey, { name: "pat", roles, address: null });
    return next(request);
  };
  let called = 0;
  const transport = createRouterTransport(
    ({ rpc }) =>
      rpc(RackService.method.startRackMaintenance, () => {
        called += 1;
        return { requestId: "r" };
      }),
    { router: { interceptors: [mapErrors, signIn, createFieldRoles(access)] } },
  );
  return { client: createClient(RackService, transport), called: () => called };
}

test("a field with a row of its own takes its role besides that of the method", async () => {
  const operator = rackService("operator");
  await operator.client.startRackMaintenance({ rackId: "rack-1" });
  await operator.client.startRackMaintenance({ rackId: "rack-1", includeAssigned: false });
  const denied = operator.client.startRackMaintenance({ rackId: "rack-1", includeAssigned: true });
  await expect(denied).rejects.toThrow(
    /may not call .*StartRackMaintenance include_assigned; it requires one of admin/,
  );
  expect(operator.called()).toBe(2);
  const admin = rackService("admin");
  await admin.client.startRackMaintenance({ rackId: "rack-1", includeAssigned: true });
  expect(admin.called()).toBe(1);
});

test("a row that names a field which the request lacks denies the method, and does not go unnoticed", async () => {
  const wrong = createAccess([{ group: null, roles: { [METHOD]: "anyone", [`${METHOD} no_such`]: ["admin"] } }]);
  const transport = createRouterTransport(
    ({ rpc }) => rpc(RackService.method.startRackMaintenance, () => ({ requestId: "r" })),
    { router: { interceptors: [createFieldRoles(wrong)] } },
  );
  const call = createClient(RackService, transport).startRackMaintenance({ rackId: "rack-1" });
  await expect(call).rejects.toSatisfy((error) => ConnectError.from(error).code === Code.Internal);
});
