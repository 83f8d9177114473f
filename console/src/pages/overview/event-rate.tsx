import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { HistoryService } from "../../../../contract/millwright/v1/history_pb.js";
import { summaryKey } from "../../api/query-keys.ts";
import { serverNow } from "../../api/server-clock.ts";
import { clientOf } from "../../api/services.ts";
import { Section } from "../../parts/section.tsx";
import classes from "./event-rate.module.css";

const HOURS = 3;
const BUCKETS = 90;

/** How much has happened over the last hours: a fleet that is suddenly busy, or silent, is seen before anything is wrong. */
export function EventRate() {
  const { data } = useQuery({
    queryKey: summaryKey("event-rate"),
    queryFn: ({ signal }) =>
      clientOf(HistoryService).countEvents(
        { since: timestampFromMs(serverNow() - HOURS * 3_600_000), buckets: BUCKETS },
        { signal },
      ),
  });
  if (data === undefined) return null;
  const counts = data.buckets.map(({ events }) => Number(events));
  const most = Math.max(1, ...counts);
  const all = counts.reduce((sum, count) => sum + count, 0);
  const words = `${all.toLocaleString("en")} in ${HOURS} hours, at most ${most.toLocaleString("en")} in ${(HOURS * 60) / BUCKETS} min`;
  return (
    <Section title="Events" aside={<Link to="/events">{words}</Link>}>
      <svg
        className={classes.chart}
        viewBox={`0 0 ${BUCKETS} 32`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Events: ${words}`}
      >
        {counts.map((count, index) => {
          const height = (count / most) * 32;
          // biome-ignore lint/suspicious/noArrayIndexKey: a bar is its place in time
          return <rect key={index} x={index + 0.1} y={32 - height} width={0.8} height={height} />;
        })}
      </svg>
    </Section>
  );
}
