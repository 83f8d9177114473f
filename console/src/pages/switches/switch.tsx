import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type Switch, SwitchService } from "../../../../contract/millwright/v1/switch_pb.js";
import { topicKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import { Age } from "../../parts/age.tsx";
import { Block, Columns, Facts, SmallTable } from "../../parts/blocks.tsx";
import { CopyAs, shellWord } from "../../parts/copy-as.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { Story } from "../../story/story.tsx";
import { Claims, DeviceLog, Health, Observed, Sensors } from "../devices/device-parts.tsx";
import { standingOfDevice } from "../devices/device-state.ts";

/** A switch: how it is, what its fabric says, and what happened to it. */
export function SwitchPage() {
  const { id = "" } = useParams({ strict: false }) as { readonly id?: string };
  const { data, error } = useQuery({
    queryKey: topicKey("switch", "switch", id),
    queryFn: ({ signal }) => clientOf(SwitchService).getSwitch({ id }, { signal }),
  });
  if (error !== null) return <ErrorNote error={error} />;
  const device = data?.switch;
  if (device === undefined) return <PageHead title={id} aside="Reading …" />;
  const call = {
    cli: `millwright switch show ${shellWord(id)}`,
    method: SwitchService.method.getSwitch,
    request: { id },
  };
  return (
    <>
      <PageHead
        title={device.name || id}
        aside={
          <>
            <StateChip {...standingOfDevice("switch", device)} />
            <Age at={device.stateSince} />
            <CopyButton text={id} what="the id" />
          </>
        }
        actions={<CopyAs call={call} />}
      />
      {device.stateReason !== "" && <p>{device.stateReason}</p>}
      <Columns>
        <SwitchFacts device={device} />
        <Firmware device={device} />
      </Columns>
      <Health sources={device.healthSources} />
      <Claims claim={device.claim} waiting={device.waitingClaims} />
      <Columns>
        <Sensors sensors={device.sensors} />
        <DeviceLog entries={data?.logEntries ?? []} />
      </Columns>
      <Block title="Story">
        <Story kind="switch" id={id} />
      </Block>
    </>
  );
}

function SwitchFacts({ device }: { readonly device: Switch }) {
  const {
    rackId,
    slotNumber,
    trayIndex,
    primary,
    fabric,
    powerState,
    powerStateObservedAt,
    health,
    bmc,
    os,
    serial,
    vendor,
    model,
  } = device;
  return (
    <Block title="Facts">
      <Facts
        items={[
          ["Rack", rackId !== "" && <ThingLink kind="rack" id={rackId} />],
          ["Slot", slotNumber !== undefined && `${slotNumber}${trayIndex === undefined ? "" : `, tray ${trayIndex}`}`],
          [
            "Fabric",
            fabric && (
              <Observed
                value={[fabric.state, fabric.reason, fabric.error].filter(Boolean).join(": ")}
                at={fabric.observedAt}
              />
            ),
          ],
          ["Primary", primary && "the fabric of the rack is configured on it"],
          ["Power", <Observed key="power" value={powerState} at={powerStateObservedAt} />],
          ["Health", health],
          ["BMC", bmc && <span className="mono">{[bmc.address, bmc.mac].filter(Boolean).join(" · ")}</span>],
          ["NVOS", os && <span className="mono">{[os.address, ...os.macs].filter(Boolean).join(" · ")}</span>],
          ["Made by", [vendor, model].filter(Boolean).join(" ")],
          [
            "Serial",
            <span key="serial" className="mono">
              {serial}
            </span>,
          ],
        ]}
      />
    </Block>
  );
}

function Firmware({ device: { firmware } }: { readonly device: Switch }) {
  const components = Object.entries(firmware);
  if (components.length === 0) return null;
  return (
    <Block title="Firmware">
      <SmallTable
        label="Firmware"
        head={["Component", "Version"]}
        rows={components.map(([component, version]) => [
          component,
          component,
          <span key="version" className="mono">
            {version}
          </span>,
        ])}
      />
    </Block>
  );
}
