import { Link } from "@tanstack/react-router";
import { LifecycleService } from "../../../../contract/millwright/v1/lifecycle_pb.js";
import { useLifecycles } from "../../api/lifecycles.ts";
import { SmallTable } from "../../parts/blocks.tsx";
import { CopyAs } from "../../parts/copy-as.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { useOverview } from "./use-overview.ts";

const call = { cli: "millwright top", method: LifecycleService.method.listLifecycles, request: {} };

/** Every kind of thing, with how many there are. */
export function Lifecycles() {
  const { data, error } = useLifecycles();
  const overview = useOverview([]);
  const counts = new Map(overview?.kinds.map((kind) => [kind.kind, kind]));
  const number = (value: bigint | undefined) => (value === undefined || value === 0n ? "" : value.toLocaleString("en"));
  return (
    <>
      <PageHead title="Lifecycles" actions={<CopyAs call={call} />} />
      {error !== null && <ErrorNote error={error} />}
      <SmallTable
        label="Lifecycles"
        head={[
          "Kind",
          { number: "States" },
          { number: "Things" },
          { number: "At work" },
          { number: "Need somebody" },
          { number: "Above SLA" },
        ]}
        rows={[...(data?.values() ?? [])].map(({ kind, states }) => [
          kind,
          <Link key="kind" to={`/lifecycles/${kind}`}>
            {kind.replaceAll("_", " ")}
          </Link>,
          states.length,
          number(counts.get(kind)?.things),
          number(counts.get(kind)?.working),
          number(counts.get(kind)?.attention),
          number(counts.get(kind)?.aboveSla),
        ])}
      />
    </>
  );
}
