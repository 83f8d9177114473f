import { useQuery } from "@tanstack/react-query";
import { type RackFirmware, RackFirmwareService } from "../../../../contract/millwright/v1/rack_firmware_pb.js";
import { listKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import { Age } from "../../parts/age.tsx";
import { Block, SmallTable } from "../../parts/blocks.tsx";
import { CopyAs } from "../../parts/copy-as.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { StateChip } from "../../parts/state-chip.tsx";

/** The firmware of racks, record by record, with what is in each. */
export function Firmware() {
  const { data, error } = useQuery({
    queryKey: listKey("rack_firmware"),
    queryFn: async ({ signal }) => (await clientOf(RackFirmwareService).listRackFirmware({}, { signal })).rackFirmware,
  });
  const call = {
    cli: "millwright rack-firmware list",
    method: RackFirmwareService.method.listRackFirmware,
    request: {},
  };
  return (
    <>
      <PageHead title="Firmware" actions={<CopyAs call={call} />} />
      {error !== null && <ErrorNote error={error} />}
      {data?.length === 0 && <p className="dim">No rack firmware is in the catalogue.</p>}
      {data?.map((firmware) => (
        <Record key={firmware.id} firmware={firmware} />
      ))}
    </>
  );
}

function Record({ firmware }: { readonly firmware: RackFirmware }) {
  const { id, hardwareType, isDefault, state, stateSince, reason, components, createdAt } = firmware;
  return (
    <Block title={id} isName>
      <p>
        <StateChip kind="rack_firmware" id={id} state={state} since={stateSince} /> {hardwareType}
        {isDefault && ", the default"}{" "}
        <span className="dim">
          added <Age at={createdAt} ago />
        </span>
      </p>
      {reason !== "" && <p>{reason}</p>}
      <SmallTable
        label={`Components of ${id}`}
        head={["Device", "Component", "Version", { number: "Size" }, "Activation", "SHA-256"]}
        rows={components.map(({ device, component, class: kind, version, bytes, activation, digest }) => [
          `${device} ${component} ${kind}`,
          device.replaceAll("_", " "),
          [component, kind].filter(Boolean).join(" "),
          <span key="version" className="mono">
            {version}
          </span>,
          bytes === 0n ? "" : `${(Number(bytes) / 1e6).toFixed(1)} MB`,
          activation,
          <span key="digest" className="mono" title={digest}>
            {digest.replace("sha256:", "").slice(0, 12)}
          </span>,
        ])}
      />
    </Block>
  );
}
