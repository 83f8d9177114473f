import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { ScriptService } from "../../../../contract/millwright/v1/script_pb.js";
import { topicKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import columns from "../../parts/columns.module.css";
import { CopyAs, shellWord } from "../../parts/copy-as.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Facts } from "../../parts/facts.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { Section } from "../../parts/section.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import classes from "./script.module.css";
import { originOf } from "./scripts.tsx";

/** One script, as it is run. */
export function ScriptPage() {
  const { id: ref = "" } = useParams({ strict: false }) as { readonly id?: string };
  const { data, error } = useQuery({
    queryKey: topicKey("script", "one", ref),
    queryFn: ({ signal }) => clientOf(ScriptService).getScript({ ref }, { signal }),
  });
  if (error !== null) return <ErrorNote error={error} />;
  const script = data?.script;
  if (script === undefined) return <PageHead title={ref} aside="Reading …" />;
  const call = {
    cli: `millwright script show ${shellWord(ref)}`,
    method: ScriptService.method.getScript,
    request: { ref },
  };
  const plans = script.planIds.flatMap((planId, at) => [
    at > 0 && ", ",
    <ThingLink key={planId} kind="plan" id={planId} />,
  ]);
  return (
    <>
      <PageHead title={ref} actions={<CopyAs call={call} />} />
      <div className={columns.column}>
        <Section title="About it">
          <Facts
            facts={[
              { name: "Does", value: script.description },
              { name: "Takes", value: script.variables },
              { name: "From", value: originOf(script) },
              { name: "Plans", value: plans.length === 0 ? "" : plans },
              { name: "Digest", value: script.digest, isCode: true },
            ]}
          />
        </Section>
        <Section title="Text">
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
          <pre className={classes.text} tabIndex={0}>
            {data?.text}
          </pre>
        </Section>
      </div>
    </>
  );
}
