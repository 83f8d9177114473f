import { Button } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { RackFirmwareService } from "../../../../contract/millwright/v1/rack_firmware_pb.js";
import {
  type PreviewRackMaintenanceResponse,
  type Rack,
  RackService,
} from "../../../../contract/millwright/v1/rack_pb.js";
import { topicKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import { spanText } from "../../api/times.ts";
import { Block, SmallTable } from "../../parts/blocks.tsx";
import { CopyAs, shellWord } from "../../parts/copy-as.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import classes from "./maintenance.module.css";
import { ACTIVITIES, actOf, requestOf, type Wish } from "./maintenance-request.ts";

interface MaintenanceProps {
  readonly rack: Rack;
  /** Chosen in the elevation. */
  readonly chosen: ReadonlySet<string>;
  readonly onEnd: () => void;
}

/** A maintenance of the rack, or of a part of it: what it would do is shown before anybody can start it. */
export function Maintenance({ rack, chosen, onEnd }: MaintenanceProps) {
  const [activities, setActivities] = useState<readonly string[]>(ACTIVITIES.map(([kind]) => kind));
  const [firmware, setFirmware] = useState("");
  const [reference, setReference] = useState("");
  const wish: Wish = { rackId: rack.id, chosen, activities, firmware, reference };
  const request = requestOf(wish);
  const key = JSON.stringify(request);
  const preview = useMutation({
    mutationFn: async (asked: string) => ({
      asked,
      answer: await clientOf(RackService).previewRackMaintenance(request),
    }),
  });
  const client = useQueryClient();
  const start = useMutation({
    mutationFn: () => clientOf(RackService).startRackMaintenance(request),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: topicKey("rack", "rack", rack.id) });
      onEnd();
    },
  });
  // A preview of something else is none.
  const shown = preview.data?.asked === key ? preview.data.answer : undefined;
  const toggle = (kind: string, isOn: boolean) =>
    setActivities(ACTIVITIES.flatMap(([each]) => ((each === kind ? isOn : activities.includes(each)) ? [each] : [])));
  return (
    <section className={classes.wizard} aria-label="Maintenance">
      <h2>Maintenance</h2>
      <p className="dim">
        {chosen.size === 0
          ? "All devices of the rack. Select devices below to work on these alone."
          : `${chosen.size} selected`}
      </p>
      <div className={classes.row}>
        {ACTIVITIES.map(([kind, label]) => (
          <label key={kind}>
            <input
              type="checkbox"
              checked={activities.includes(kind)}
              onChange={(event) => toggle(kind, event.currentTarget.checked)}
            />
            {label}
          </label>
        ))}
        {activities.includes("firmware_upgrade") && (
          <FirmwareChoice value={firmware} onChoose={setFirmware} rack={rack} />
        )}
        <label>
          Ticket
          <input type="text" value={reference} onChange={(event) => setReference(event.currentTarget.value)} />
        </label>
      </div>
      {preview.error !== null && <ErrorNote error={preview.error} />}
      {start.error !== null && <ErrorNote error={start.error} />}
      {shown && <Preview preview={shown} />}
      <div className={classes.row}>
        {shown ? (
          <Button size="xs" disabled={start.isPending || shown.devices.length === 0} onClick={() => start.mutate()}>
            {start.isPending ? "Asking …" : actOf(shown)}
          </Button>
        ) : (
          <Button size="xs" disabled={activities.length === 0 || preview.isPending} onClick={() => preview.mutate(key)}>
            {preview.isPending ? "Reading …" : "Preview"}
          </Button>
        )}
        <Button size="xs" variant="default" onClick={onEnd}>
          Leave
        </Button>
        <CopyAs call={{ cli: cliOf(wish), method: RackService.method.startRackMaintenance, request }} />
      </div>
    </section>
  );
}

function cliOf({ rackId, chosen, activities, firmware, reference }: Wish): string {
  const idsOf = (kind: string) =>
    [...chosen].flatMap((key) => (key.startsWith(`${kind}/`) ? [shellWord(key.slice(kind.length + 1))] : []));
  const list = (option: string, ids: readonly string[]) => (ids.length === 0 ? "" : `${option} ${ids.join(" ")}`);
  return [
    `millwright rack maintenance start --rack ${shellWord(rackId)}`,
    list("--machine-ids", idsOf("machine")),
    list("--switch-ids", idsOf("switch")),
    list("--power-shelf-ids", idsOf("power_shelf")),
    list(
      "--activities",
      activities.map((kind) => kind.replaceAll("_", "-")),
    ),
    firmware && `--firmware-version ${shellWord(firmware)}`,
    reference && `--reference ${shellWord(reference)}`,
  ]
    .filter(Boolean)
    .join(" ");
}

function FirmwareChoice({
  value,
  onChoose,
  rack,
}: {
  readonly value: string;
  readonly onChoose: (id: string) => void;
  readonly rack: Rack;
}) {
  const { data = [] } = useQuery({
    queryKey: ["rack_firmware", "list", undefined, "choice"],
    queryFn: async ({ signal }) =>
      (await clientOf(RackFirmwareService).listRackFirmware({ onlyAvailable: true }, { signal })).rackFirmware,
  });
  return (
    <label>
      Version
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        <option value="">{rack.defaultFirmware === "" ? "the default" : `${rack.defaultFirmware} (default)`}</option>
        {data.map(({ id }) => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </select>
    </label>
  );
}

/** What it would do: to what, in which steps, whom it waits for, and whom it hits. */
function Preview({ preview }: { readonly preview: PreviewRackMaintenanceResponse }) {
  const { devices, leftOut, stages, holders, assignedTrays, expectedDuration, durationBasis, notes } = preview;
  const failing = stages.filter(({ fails }) => fails !== "");
  const flashed = ({ components }: PreviewRackMaintenanceResponse["devices"][number]) =>
    components
      .map(({ component, from, to, change }) => (change === "stays" ? "" : `${component} ${from || "?"} → ${to}`))
      .filter(Boolean);
  return (
    <>
      {failing.map(({ name, fails }) => (
        <p key={name} className={classes.warning}>
          {name} would fail: {fails}
        </p>
      ))}
      {assignedTrays.length > 0 && (
        <p className={classes.warning}>
          {assignedTrays.length} {assignedTrays.length === 1 ? "tray is" : "trays are"} in use or may be:{" "}
          {assignedTrays.map(({ id }) => id).join(", ")}
        </p>
      )}
      <Block title="Stages">
        <SmallTable
          label="Stages"
          head={["Stage", { number: "Devices" }, "Remark"]}
          rows={stages
            .filter(({ skipped, devices: count }) => skipped === "" || count > 0)
            .map(({ name, devices: count, skipped, fails }) => [
              name,
              name.replaceAll("_", " "),
              count,
              fails || (skipped && `skipped: ${skipped}`),
            ])}
        />
      </Block>
      <Block title="Devices">
        <SmallTable
          label="Devices"
          head={["Device", "Notices", "Firmware"]}
          rows={devices.map((device) => [
            `${device.kind}/${device.id}`,
            <ThingLink key="id" kind={device.kind} id={device.id} />,
            device.disturbances.join(", "),
            flashed(device).join(", "),
          ])}
        />
      </Block>
      <ul className={classes.notes}>
        <li>
          {expectedDuration
            ? `takes about ${spanText(Number(expectedDuration.seconds) * 1_000)}: ${durationBasis}`
            : `nobody knows how long it takes: ${durationBasis}`}
        </li>
        {holders.map(({ kind, id, does }) => (
          <li key={`${kind}/${id}`}>
            waits for <ThingLink kind={kind} id={id} withKind />, which {does}
          </li>
        ))}
        {leftOut.map(({ id, why }) => (
          <li key={id}>
            leaves out {id}: {why}
          </li>
        ))}
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </>
  );
}
