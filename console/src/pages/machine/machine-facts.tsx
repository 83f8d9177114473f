import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { Machine } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { harmless } from "../../api/hostile-text.ts";
import { toMillis } from "../../api/times.ts";
import { useNow } from "../../live/use-now.ts";
import { Age } from "../../parts/age.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Section } from "../../parts/section.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import classes from "./machine-facts.module.css";

/** Older than this, what was read is marked. */
const OLD_MS = 15 * 60_000;

/** What was read from the machine, with its age, and what its owner says of it. */
export function MachineFacts({ machine }: { readonly machine: Machine }) {
  const { spec, status, labels, createdAt } = machine;
  const { inventory, claim, residue = [] } = status ?? {};
  const isOld = useIsOld(inventory?.observedAt);
  return (
    <>
      <Section
        title="Seen"
        aside={
          inventory && (
            <span className="dim">
              read <Age at={inventory.observedAt} ago />
            </span>
          )
        }
      >
        {inventory === undefined ? (
          <p className="dim">It was not inspected yet.</p>
        ) : (
          <div className={classes.seen} data-old={isOld || undefined}>
            <Facts
              facts={[
                { name: "Power", value: inventory.powerState },
                { name: "Model", value: harmless(`${inventory.vendor} ${inventory.model}`.trim()) },
                { name: "Serial", value: harmless(inventory.serial), isCode: true },
                { name: "BMC firmware", value: harmless(inventory.bmcFirmwareVersion), isCode: true },
              ]}
            />
          </div>
        )}
      </Section>
      <Section title="On record">
        <Facts
          facts={[
            { name: "Provider", value: spec?.provider },
            { name: "BMC", value: spec?.bmcEndpoint, isCode: true },
            { name: "SSH", value: status?.sshMovedTo || spec?.sshEndpoint, isCode: true },
            { name: "MAC addresses", value: spec?.macAddresses.join(", "), isCode: true },
            { name: "Serial", value: spec?.serial, isCode: true },
            { name: "Cluster", value: spec?.targetClusterRef },
            { name: "Customer", value: spec?.customerId },
            { name: "Location", value: spec?.location },
            { name: "Held by", value: claim && <ThingLink kind={claim.kind} id={claim.id} withKind /> },
            { name: "Left behind", value: residue.map(harmless).join("; ") },
            {
              name: "Labels",
              value: Object.entries(labels)
                .map(([name, value]) => `${name}=${value}`)
                .join(", "),
            },
            { name: "Registered", value: <Age at={createdAt} ago /> },
          ]}
        />
      </Section>
    </>
  );
}

function useIsOld(at: Timestamp | undefined): boolean {
  const now = useNow();
  const read = toMillis(at);
  return read !== undefined && now - read > OLD_MS;
}
