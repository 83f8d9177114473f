import { useQuery } from "@tanstack/react-query";
import { type GetOverviewResponse, OverviewService } from "../../../../contract/millwright/v1/overview_pb.js";
import { summaryKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import columns from "../../parts/columns.module.css";
import { countWords } from "../../parts/count-words.ts";
import { ErrorNote } from "../../parts/error-note.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { Section } from "../../parts/section.tsx";
import { useMe } from "../../shell/me.tsx";
import { Attention } from "./attention.tsx";
import { Fleet } from "./fleet.tsx";
import { fleetOf } from "./fleet-kinds.ts";
import { Rates } from "./rates.tsx";
import { Working } from "./working.tsx";

/** What needs somebody first, then what is being worked on, then how the fleet is. If all is well it is almost empty, and says so. */
export function Overview() {
  const { may } = useMe();
  const { data, error } = useQuery({
    queryKey: summaryKey("overview"),
    queryFn: ({ signal }) => clientOf(OverviewService).getOverview({}, { signal }),
    enabled: may.has("millwright.v1.OverviewService/GetOverview"),
  });
  return (
    <>
      <PageHead title="Overview" />
      {error !== null && <ErrorNote error={error} />}
      <div className={columns.column}>
        {data ? <NeedsYou overview={data} /> : error === null && <p className="dim">Reading …</p>}
        {may.has("millwright.v1.RunService/ListRuns") && <Working />}
        {data && (
          <Section title="Fleet">
            <Fleet kinds={data.kinds} />
          </Section>
        )}
        {may.has("millwright.v1.HistoryService/CountEvents") && <Rates />}
      </div>
    </>
  );
}

function NeedsYou({ overview: { attention, cut, kinds } }: { readonly overview: GetOverviewResponse }) {
  if (attention.length === 0) return <p>{quietWords(kinds)}</p>;
  const things = attention.reduce((sum, group) => sum + group.things, 0);
  return (
    <Section title="Needs you" aside={<strong>{things.toLocaleString("en")}</strong>}>
      <Attention groups={attention} />
      {cut && <p className="dim">There is more than was counted.</p>}
    </Section>
  );
}

const LARGEST_KINDS = 4;

/** `540 machines, 20 racks: nothing needs you.` */
function quietWords(kinds: GetOverviewResponse["kinds"]): string {
  const largest = fleetOf(kinds);
  if (largest.length === 0) return "Nothing is on record yet.";
  const words = largest.slice(0, LARGEST_KINDS).map(({ kind, things }) => countWords(Number(things), kind));
  return `${words.join(", ")}: nothing needs you.`;
}
