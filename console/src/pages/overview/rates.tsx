import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { HistoryService } from "../../../../contract/millwright/v1/history_pb.js";
import { summaryKey } from "../../api/query-keys.ts";
import { serverNow } from "../../api/server-clock.ts";
import { clientOf } from "../../api/services.ts";
import { Section } from "../../parts/section.tsx";
import type { Tone } from "../../tone/tone.ts";
import classes from "./rates.module.css";

const HOURS = 6;
const BUCKETS = 90;
const HEIGHT = 32;

interface RateProps {
  readonly title: string;
  /** As in the filter of the events: kinds, and types or alarms. */
  readonly kinds: readonly string[];
  readonly types: readonly string[];
  readonly tone: Tone;
}

/** How much has happened over the last hours: a fleet that is suddenly busy, failing or silent is seen before anybody asks. */
export const Rates = () => (
  <Section title={`The last ${HOURS} hours`}>
    <div className={classes.rates}>
      <Rate title="Events" kinds={[]} types={[]} tone="calm" />
      <Rate title="Runs begun" kinds={["run"]} types={["created"]} tone="working" />
      <Rate title="Failures" kinds={[]} types={["failed"]} tone="trouble" />
    </div>
  </Section>
);

function Rate({ title, kinds, types, tone }: RateProps) {
  const { data } = useQuery({
    queryKey: summaryKey("rate", ...kinds, ...types),
    queryFn: ({ signal }) =>
      clientOf(HistoryService).countEvents(
        {
          since: timestampFromMs(serverNow() - HOURS * 3_600_000),
          buckets: BUCKETS,
          kinds: [...kinds],
          types: [...types],
        },
        { signal },
      ),
  });
  const counts = (data?.buckets ?? []).map(({ events }) => Number(events));
  const most = Math.max(1, ...counts);
  const all = counts.reduce((sum, count) => sum + count, 0);
  const words = `${all.toLocaleString("en")}, at most ${most.toLocaleString("en")} in ${(HOURS * 60) / BUCKETS} min`;
  const search = { ...(kinds.length > 0 && { kinds: kinds.join() }), ...(types.length > 0 && { types: types.join() }) };
  return (
    <figure className={classes.rate} data-tone={tone}>
      <figcaption>
        <Link to="/events" search={search as never}>
          {title}
        </Link>
        <span className="dim">{all === 0 ? "none" : words}</span>
      </figcaption>
      <svg
        className={classes.chart}
        viewBox={`0 0 ${BUCKETS} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${all === 0 ? "none" : words}`}
      >
        {counts.map((count, index) => {
          const height = (count / most) * HEIGHT;
          // biome-ignore lint/suspicious/noArrayIndexKey: a bar is its place in time
          return <rect key={index} x={index + 0.1} y={HEIGHT - height} width={0.8} height={height} />;
        })}
      </svg>
    </figure>
  );
}
