import { expect, test } from "vitest";
import { access } from "../things/all-things.ts";
import { HELD_METHODS } from "./held-methods.ts";

/** They change what is on record, or take what a device or an agent says; none of them reaches a device or begins what does. */
const FREE = [
  /\/api\/v1\/(fleet\/sites|groups|workflows)/, // catalogues
  /^POST \/api\/v1\/fleet\/nodes\/\{node\}\/(bootstrap|quarantine)$/,
  /^(POST|PATCH|DELETE) \/api\/v1\/nodes(\/\{id\}(\/tags(\/\{tag\})?|\/confirm-erased)?)?$/, // no machine installs itself before the review has ended
  /^POST \/internal\/v1\/nodes\/\{id\}\/(heartbeat|tasks\/\{task_id\}\/(renew|result))$/, // parked tasks are not handed out
  /^baremetal\.v1\.MachineService\//,
  /\/(Add|Update|Delete|DeleteAll|ReplaceAll)Expected\w+$/,
  /\/(AdminForce)?(Delete|ForceDelete)(PowerShelf|Switch|Rack)$/, // marks and records; passes that act on them are parked
  /\/(Create|Delete)RackFirmware$|\/RackFirmwareSetDefault$|\/DownloadRackFirmware$/,
  /HealthReport$/,
  /\/Update(PowerShelf|Rack|Switch)Metadata$/,
  /^millwright\.v1\.(CloudInit|Cluster|Image|Fleet|PlanCatalog|Token|Session|SecretKey|Restore|Access|System|SavedView)Service\//,
  /^millwright\.v1\.FleetAllocationService\/(Set|Remove)RoceAssignments?$/,
  /^millwright\.v1\.FleetNodeService\/(QuarantineNode|ReissueBootstrap)$/,
  /^millwright\.v1\.MachineLifecycleService\/(AcceptMachine|AcceptMachineCertificate|RetireMachine|SetMachineCredentials)$/,
  /^millwright\.v1\.NodeService\/ConfirmNodeErased$/,
  /^millwright\.v1\.(PowerShelf|Switch)Service\/(Accept\w+Certificate|Create\w+|Refresh\w+|Set\w+)$/,
  /^millwright\.v1\.RackService\/(PutRackProfile|DeleteRackProfile|RefreshRack)$/, // what follows needs a claim, and none is granted
];
const READS =
  /(^GET )|\/preview$|\/(Count|Describe|Search|Verify|Export|Get|List|Find|Watch|Preview|Stream|Read|Explain|Preflight)\w*$/;

const isField = (method: string) => method.includes("/") && method.includes(" ") && !/^[A-Z]+ \//.test(method);
const writing = access.methods.filter(
  (method) => access.allowedFor(method) !== "anyone" && !READS.test(method) && !isField(method),
);

test("each method that writes is held during a review, or known to reach no device", () => {
  const unknown = writing.filter((method) => !HELD_METHODS.has(method) && !FREE.some((free) => free.test(method)));
  expect(unknown).toEqual([]);
  expect([...HELD_METHODS].filter((method) => !access.methods.includes(method))).toEqual([]);
  expect([...HELD_METHODS].filter((method) => FREE.some((free) => free.test(method)))).toEqual([]);
});

test("what a caller does to a machine by a run or a command is held", () => {
  expect([...HELD_METHODS]).toEqual(
    expect.arrayContaining([
      "baremetal.v1.RunService/StartRun",
      "forge.Forge/SetPowerShelfMaintenance",
      "millwright.v1.MachinePowerService/SetMachinePower",
      "PATCH /api/v1/nodes/{id}/state",
    ]),
  );
});
