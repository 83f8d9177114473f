import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type {
  Claim,
  DeviceLogEntry,
  HealthSource,
  SensorReading,
} from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { Age } from "../../parts/age.tsx";
import { Block, SmallTable } from "../../parts/blocks.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";

/** A value that was read, with its age: an old one is no fact. */
export const Observed = ({ value, at }: { readonly value: string; readonly at: Timestamp | undefined }) => (
  <>
    {value}{" "}
    {at && (
      <span className="dim">
        read <Age at={at} ago />
      </span>
    )}
  </>
);

/** Who works on it, and who waits for it. */
export function Claims({ claim, waiting }: { readonly claim: Claim | undefined; readonly waiting: readonly Claim[] }) {
  if (claim === undefined && waiting.length === 0) return null;
  return (
    <Block title="Claims">
      {claim && (
        <p>
          held by <ThingLink kind={claim.holderKind} id={claim.holderId} withKind /> for <Age at={claim.since} />
        </p>
      )}
      {waiting.map(({ holderKind, holderId, since }) => (
        <p key={`${holderKind}/${holderId}`} className="dim">
          then <ThingLink kind={holderKind} id={holderId} withKind />, which has waited for <Age at={since} />
        </p>
      ))}
    </Block>
  );
}

export function Sensors({ sensors }: { readonly sensors: readonly SensorReading[] }) {
  if (sensors.length === 0) return null;
  return (
    <Block title="Sensors">
      <SmallTable
        label="Sensors"
        head={["Sensor", { number: "Value" }, "Unit"]}
        rows={sensors.map(({ name, value, unit }) => [name, name, value.toLocaleString("en"), unit])}
      />
    </Block>
  );
}

export function Health({ sources }: { readonly sources: readonly HealthSource[] }) {
  const alerts = sources.flatMap(({ source, counts, alerts: some }) =>
    some.map((alert) => ({ source, counts, ...alert })),
  );
  if (alerts.length === 0) return null;
  return (
    <Block title="Alerts">
      <SmallTable
        label="Alerts"
        head={["Alert", "Of", "Says", "Since"]}
        rows={alerts.map(({ source, counts, id, target, message, since }) => [
          `${source}/${id}/${target}`,
          [id, target].filter(Boolean).join(" "),
          counts ? source : `${source}, which does not count`,
          message,
          <Age key="since" at={since} />,
        ])}
      />
    </Block>
  );
}

/** What the device's own log says, the newest first. */
export function DeviceLog({ entries }: { readonly entries: readonly DeviceLogEntry[] }) {
  if (entries.length === 0) return null;
  return (
    <Block title="Log of the device">
      <SmallTable
        label="Log of the device"
        head={["When", "Severity", "Message"]}
        rows={entries
          .slice(0, 50)
          .map(({ id, at, severity, message }) => [id, <Age key="at" at={at} ago />, severity, message])}
      />
    </Block>
  );
}
