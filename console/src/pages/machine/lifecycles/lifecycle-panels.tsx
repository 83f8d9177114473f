import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { ExplainService } from "../../../../../contract/millwright/v1/explain_pb.js";
import { useLifecycles } from "../../../api/lifecycles.ts";
import { topicKey } from "../../../api/query-keys.ts";
import { clientOf } from "../../../api/services.ts";
import { Age } from "../../../parts/age.tsx";
import { Section } from "../../../parts/section.tsx";
import { StateChip } from "../../../parts/state-chip.tsx";
import { ThingLink } from "../../../parts/thing-link.tsx";
import classes from "./lifecycle-panels.module.css";
import type { ThingStanding } from "./use-machine-things.ts";

const Diagram = lazy(async () => ({ default: (await import("../../lifecycles/diagram.tsx")).Diagram }));
const NO_COUNTS: ReadonlyMap<string, number> = new Map();

/** The lifecycles that a machine is in, beside each other: where each stands, since when and why, in the server's own table. */
export function LifecyclePanels({ things }: { readonly things: readonly ThingStanding[] }) {
  return (
    <div className={classes.panels}>
      {things.map((thing) => (
        <Panel key={`${thing.kind}/${thing.id}`} thing={thing} />
      ))}
    </div>
  );
}

function Panel({ thing }: { readonly thing: ThingStanding }) {
  const { kind, id, state, since } = thing;
  const { data: lifecycles } = useLifecycles();
  const { data: why } = useQuery({
    queryKey: topicKey(kind, "explain", id),
    queryFn: ({ signal }) => clientOf(ExplainService).explain({ kind, id }, { signal }),
    staleTime: 2_000,
  });
  const lifecycle = lifecycles?.get(kind);
  return (
    <Section
      title={kind.replaceAll("_", " ")}
      aside={
        <>
          <StateChip {...thing} />
          {since && (
            <span className="dim">
              for <Age at={since} />
            </span>
          )}
          {kind !== "machine" && <ThingLink kind={kind} id={id} />}
        </>
      }
    >
      <p className={classes.why}>{why?.waitingFor[0] ? `waits for ${why.waitingFor[0]}` : why?.doing}</p>
      <Suspense fallback={null}>
        {lifecycle && <Diagram lifecycle={lifecycle} counts={NO_COUNTS} current={state} />}
      </Suspense>
    </Section>
  );
}
