import { expect, test } from "vitest";
import { MachineService } from "../../../../contract/millwright/v1/machine_pb.js";
import { DeletedShelves, PowerShelfService } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

/** Two pages of one machine each; the second has no successor. */
async function listMachines(...args: string[]) {
  const asked: object[] = [];
  const result = await runAgainst(
    (router) =>
      router.service(MachineService, {
        listMachines({ filter, orderBy, pageSize, pageToken, withTotal }) {
          asked.push({ filter, orderBy, pageSize, pageToken, withTotal });
          const isFirst = pageToken === "";
          return {
            machines: [{ machineId: isFirst ? "m-1" : "m-2" }],
            nextPageToken: isFirst ? "more" : "",
            ...(withTotal && { totalSize: 7 }),
          };
        },
      }),
    ["machine", "list", "-o", "csv", ...args],
  );
  return { ...result, asked };
}

test("a machine list takes an order and a total, which is asked for once and said beside the output", async () => {
  const { out, err, asked } = await listMachines("--filter", "a=b", "--order-by", "rack desc", "--total");
  expect(asked).toEqual([
    { filter: "a=b", orderBy: "rack desc", pageSize: 500, pageToken: "", withTotal: true },
    { filter: "a=b", orderBy: "rack desc", pageSize: 500, pageToken: "more", withTotal: false },
  ]);
  expect(out).toContain("m-2");
  expect(err).toBe("2 of 7\n");
});

test("a limit ends the list, and no page is read beyond it", async () => {
  const { out, asked } = await listMachines("--order-by", "rack", "--limit", "1");
  expect(asked).toMatchObject([{ pageSize: 1 }]);
  expect(out).not.toContain("m-2");
});

test("a filter beside --failing is kept together", async () => {
  const { asked } = await listMachines("--failing", "--filter", "rack=a OR rack=b", "--order-by", "rack");
  expect(asked[0]).toMatchObject({ filter: "(rack=a OR rack=b) AND failing=true" });
});

test("a power shelf list hands filter and order over, and leaves it to the filter what is deleted", async () => {
  const asked: object[] = [];
  const { err } = await runAgainst(
    (router) =>
      router.service(PowerShelfService, {
        listPowerShelves({ filter, orderBy, deleted }) {
          asked.push({ filter, orderBy, deleted });
          return { powerShelves: [{ id: "b" }, { id: "a" }], totalSize: 2 };
        },
      }),
    ["ps", "list", "--filter", "deleted=true", "--order-by", "name", "--total"],
  );
  expect(asked).toEqual([{ filter: "deleted=true", orderBy: "name", deleted: DeletedShelves.UNSPECIFIED }]);
  expect(err).toContain("2 of 2");
});

test("expected power shelves are listed with the same options", async () => {
  const asked: object[] = [];
  const list = (line: string) =>
    runAgainst(
      (router) =>
        router.service(PowerShelfService, {
          listExpectedPowerShelves({ filter, orderBy, pageSize, withTotal }) {
            asked.push({ filter, orderBy, pageSize, withTotal });
            const rows = [
              { bmcMac: "02:00:5e:10:00:02", rackId: "b" },
              { bmcMac: "02:00:5e:10:00:01", rackId: "a" },
            ];
            return { expectedPowerShelves: rows, nextPageToken: "more", ...(withTotal && { totalSize: 9 }) };
          },
        }),
      `eps list -o csv ${line}`,
    );
  const { out, err } = await list("--filter name^=pdu --order-by name --limit 2 --total");
  expect(asked).toEqual([{ filter: "name^=pdu", orderBy: "name", pageSize: 2, withTotal: true }]);
  expect(out.indexOf(":02,")).toBeLessThan(out.indexOf(":01,"));
  expect(err).toBe("2 of 9\n");
  const byPlace = (await list("--limit 2")).out;
  expect(byPlace.indexOf(":01,")).toBeLessThan(byPlace.indexOf(":02,"));
});
