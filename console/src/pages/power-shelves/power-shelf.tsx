import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import {
  type GetPowerShelfResponse,
  type PowerShelf,
  PowerShelfService,
} from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { Recommended } from "../../actions/recommended.tsx";
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
import { kilowatts } from "./power.ts";

/** A power shelf: how it is, what it delivers, and what happened to it. */
export function PowerShelfPage() {
  const { id = "" } = useParams({ strict: false }) as { readonly id?: string };
  const { data, error } = useQuery({
    queryKey: topicKey("power_shelf", "power_shelf", id),
    queryFn: ({ signal }) => clientOf(PowerShelfService).getPowerShelf({ id }, { signal }),
  });
  if (error !== null) return <ErrorNote error={error} />;
  if (data?.powerShelf === undefined) return <PageHead title={id} aside="Reading …" />;
  return <Shelf shelf={data.powerShelf} answer={data} />;
}

function Shelf({ shelf, answer }: { readonly shelf: PowerShelf; readonly answer: GetPowerShelfResponse }) {
  const { id, name, stateSince, stateReason, claim, waitingClaims, sensors, healthSources } = shelf;
  const call = {
    cli: `millwright power-shelf show ${shellWord(id)}`,
    method: PowerShelfService.method.getPowerShelf,
    request: { id },
  };
  return (
    <>
      <PageHead
        title={name || id}
        aside={
          <>
            <StateChip {...standingOfDevice("power_shelf", shelf)} />
            <Age at={stateSince} />
            <CopyButton text={id} what="the id" />
          </>
        }
        actions={
          <>
            <Recommended kind="power_shelf" id={id} service={PowerShelfService} />
            <CopyAs call={call} />
          </>
        }
      />
      {stateReason !== "" && <p>{stateReason}</p>}
      <Columns>
        <ShelfFacts shelf={shelf} />
        <Supplies shelf={shelf} />
      </Columns>
      <Health sources={healthSources} />
      <Claims claim={claim} waiting={waitingClaims} />
      <Columns>
        <Sensors sensors={sensors} />
        <DeviceLog entries={answer.logEntries} />
      </Columns>
      <Block title="Story">
        <Story kind="power_shelf" id={id} />
      </Block>
    </>
  );
}

function ShelfFacts({ shelf }: { readonly shelf: PowerShelf }) {
  const {
    rackId,
    powerState,
    powerStateObservedAt,
    health,
    capacityWatts,
    voltage,
    bmc,
    serial,
    vendor,
    model,
    pendingRequest,
    lastRequest,
  } = shelf;
  return (
    <Block title="Facts">
      <Facts
        items={[
          ["Rack", rackId !== "" && <ThingLink kind="rack" id={rackId} />],
          ["Power", <Observed key="power" value={powerState} at={powerStateObservedAt} />],
          ["Health", health],
          ["Capacity", capacityWatts !== undefined && kilowatts(capacityWatts)],
          ["Voltage", voltage !== undefined && `${voltage} V`],
          [
            "Asked",
            pendingRequest && `${pendingRequest.operation.replaceAll("_", " ")} by ${pendingRequest.initiator}`,
          ],
          [
            "Asked last",
            lastRequest &&
              `${lastRequest.operation.replaceAll("_", " ")} by ${lastRequest.initiator}: ${lastRequest.outcome}`,
          ],
          ["BMC", bmc && <span className="mono">{[bmc.address, bmc.mac].filter(Boolean).join(" · ")}</span>],
          ["BMC firmware", bmc?.firmwareVersion],
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

function Supplies({ shelf: { powerSupplies } }: { readonly shelf: PowerShelf }) {
  if (powerSupplies.length === 0) return null;
  return (
    <Block title="Power supplies">
      <SmallTable
        label="Power supplies"
        head={["Supply", "Output", "Health", "Firmware", "Serial"]}
        rows={powerSupplies.map(({ name, on, health, firmwareVersion, serial }) => [
          name,
          name,
          on === undefined ? "not known" : on ? "on" : "off",
          health,
          firmwareVersion,
          <span key="serial" className="mono">
            {serial}
          </span>,
        ])}
      />
    </Block>
  );
}
