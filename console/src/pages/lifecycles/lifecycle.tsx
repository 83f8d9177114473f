import { Link, useParams } from "@tanstack/react-router";
import {
  type Lifecycle,
  LifecycleService,
  type LifecycleState,
} from "../../../../contract/millwright/v1/lifecycle_pb.js";
import { type AttentionGroup, AttentionReason } from "../../../../contract/millwright/v1/overview_pb.js";
import { useLifecycles } from "../../api/lifecycles.ts";
import { spanText } from "../../api/times.ts";
import { Age } from "../../parts/age.tsx";
import { Block, SmallTable } from "../../parts/blocks.tsx";
import { CopyAs } from "../../parts/copy-as.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { ToneIcon } from "../../tone/tone-icon.tsx";
import { Diagram } from "./diagram.tsx";
import { listOfState } from "./state-list.ts";
import { useOverview } from "./use-overview.ts";

/** One lifecycle: drawn from the server's own table, with how many things are where, and since when. */
export function LifecyclePage() {
  const { kind = "" } = useParams({ strict: false }) as { readonly kind?: string };
  const { data, error } = useLifecycles();
  const overview = useOverview([kind]);
  const lifecycle = data?.get(kind);
  if (error !== null) return <ErrorNote error={error} />;
  if (lifecycle === undefined)
    return <PageHead title={kind} aside={data === undefined ? "Reading …" : "There is no such lifecycle."} />;
  const counts = new Map(
    overview?.kinds.flatMap(({ states }) => states.map(({ state, things }) => [state, Number(things)] as const)),
  );
  const call = {
    cli: `millwright lifecycle show ${kind}`,
    method: LifecycleService.method.getLifecycle,
    request: { kind },
  };
  return (
    <>
      <PageHead
        title={kind.replaceAll("_", " ")}
        aside={<Link to="/lifecycles">all lifecycles</Link>}
        actions={<CopyAs call={call} />}
      />
      <Diagram lifecycle={lifecycle} counts={counts} />
      <States lifecycle={lifecycle} counts={counts} late={lateOf(overview?.attention ?? [])} />
      <Ways lifecycle={lifecycle} />
    </>
  );
}

type Late = ReadonlyMap<string, Pick<AttentionGroup, "things" | "since">>;

const lateOf = (groups: readonly AttentionGroup[]): Late =>
  new Map(
    groups.flatMap((group) => (group.reason === AttentionReason.ABOVE_SLA ? [[group.state, group] as const] : [])),
  );

interface StatesProps {
  readonly lifecycle: Lifecycle;
  readonly counts: ReadonlyMap<string, number>;
  readonly late: Late;
}

function States({ lifecycle: { kind, states }, counts, late }: StatesProps) {
  return (
    <Block title="States">
      <SmallTable
        label="States"
        head={["State", { number: "Things" }, { number: "SLA" }, "Above SLA", "Means"]}
        rows={states.map((state) => [
          state.name,
          <StateName key="name" kind={kind} state={state} />,
          state.terminal ? "" : (counts.get(state.name) ?? 0).toLocaleString("en"),
          state.sla === undefined ? natureOf(state) : spanText(Number(state.sla.seconds) * 1_000),
          <LateIn key="late" late={late.get(state.name)} />,
          state.doc,
        ])}
      />
    </Block>
  );
}

const natureOf = ({ terminal, resting }: LifecycleState): string => (terminal ? "ends" : resting ? "rests" : "");

/** To what is in it, where the console has a list of the kind. */
function StateName({ kind, state }: { readonly kind: string; readonly state: LifecycleState }) {
  const list = listOfState(kind, state.name);
  return (
    <>
      {state.trouble && <ToneIcon tone="trouble" />}{" "}
      {list === undefined ? (
        state.name
      ) : (
        <Link to={list.to} search={{ filter: list.filter } as never}>
          {state.name}
        </Link>
      )}
    </>
  );
}

function LateIn({ late }: { readonly late: ReturnType<Late["get"]> }) {
  if (late === undefined) return null;
  return (
    <>
      <ToneIcon tone="trouble" /> {late.things}, the first for <Age at={late.since} />
    </>
  );
}

function Ways({ lifecycle: { transitions } }: { readonly lifecycle: Lifecycle }) {
  return (
    <Block title="Ways, in the order in which they are tried">
      <SmallTable
        label="Ways"
        head={["From", "To", "By", "Why"]}
        rows={transitions.map(({ from, to, deletes, stays, trigger, failure, doc }, at) => [
          `${at} ${from} ${to} ${trigger}`,
          from === "*" ? "any state" : from,
          deletes ? "(gone)" : stays ? "(stays)" : to,
          `${trigger.replaceAll("_", " ")}${failure ? " (failure)" : ""}`,
          doc,
        ])}
      />
    </Block>
  );
}
