import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { type ExplainResponse, ExplainService, type NextCommand } from "../../../contract/millwright/v1/explain_pb.js";
import { useLifecycles, useStateOf } from "../api/lifecycles.ts";
import { topicKey } from "../api/query-keys.ts";
import { clientOf } from "../api/services.ts";
import { useMe } from "../shell/me.tsx";
import { Age } from "./age.tsx";
import { CopyButton } from "./copy-button.tsx";
import { ErrorNote } from "./error-note.tsx";
import classes from "./explanation.module.css";
import { ThingLink } from "./thing-link.tsx";

const ExplainedAction = lazy(async () => ({
  default: (await import("../actions/explained-action.tsx")).ExplainedAction,
}));

interface ExplanationProps {
  readonly kind: string;
  readonly id: string;
  /** With it, what the state means and what usually comes next is said too. */
  readonly state?: string;
}

/** Why a thing is as it is, what it waits for, and what helps: in the server's words. */
export function Explanation({ kind, id, state }: ExplanationProps) {
  const { data, error } = useQuery({
    queryKey: topicKey(kind, "explain", id),
    queryFn: ({ signal }) => clientOf(ExplainService).explain({ kind, id }, { signal }),
    staleTime: 2_000,
  });
  if (error !== null) return <ErrorNote error={error} />;
  if (data === undefined) return <p className="dim">Reading …</p>;
  return (
    <div className={classes.explanation}>
      <p className={classes.headline}>{data.headline}</p>
      {data.since && (
        <p className="dim">
          since <Age at={data.since} ago />
        </p>
      )}
      {data.doing !== "" && !data.headline.includes(data.doing) && <p>{data.doing}</p>}
      <WaitChain answer={data} />
      {data.lastFailure && (
        <section>
          <h2>Failed last</h2>
          <p>
            {data.lastFailure.message}{" "}
            <span className="dim">
              {data.lastFailure.step !== "" && `${data.lastFailure.step}, `}
              {data.lastFailure.attempt > 0 && `attempt ${data.lastFailure.attempt}, `}
              <Age at={data.lastFailure.at} ago />
            </span>{" "}
            {data.lastFailure.runId !== "" && <ThingLink kind="run" id={data.lastFailure.runId} withKind />}
          </p>
        </section>
      )}
      <NextCommands answer={data} canAct={state === undefined} />
      {state !== undefined && <StateMeaning kind={kind} state={state} />}
    </div>
  );
}

/** What has to happen before it goes on, and who is in the way: the nearest first. */
function WaitChain({ answer: { waitingFor, claims } }: { readonly answer: ExplainResponse }) {
  if (waitingFor.length === 0 && claims.length === 0) return null;
  return (
    <section>
      <h2>Waits for</h2>
      <ol className={classes.chain}>
        {waitingFor.map((what) => (
          <li key={what}>{what}</li>
        ))}
        {claims.map(({ thingKind, thingId, claim, reason }) => (
          <li key={`${thingKind} ${thingId} ${claim?.holderId}`}>
            <ThingLink kind={thingKind} id={thingId} withKind /> is held by{" "}
            {claim && <ThingLink kind={claim.holderKind} id={claim.holderId} withKind />}
            {reason !== "" && <span className="dim"> {reason}</span>}
          </li>
        ))}
      </ol>
    </section>
  );
}

interface NextCommandsProps {
  readonly answer: ExplainResponse;
  /** A popover goes away under a dialog: there commands are copied alone. */
  readonly canAct: boolean;
}

function NextCommands({ answer: { nextCommands }, canAct }: NextCommandsProps) {
  const { may } = useMe();
  const [chosen, setChosen] = useState<NextCommand | undefined>();
  if (nextCommands.length === 0) return null;
  // The server puts what helps most first.
  const first = nextCommands.find(({ call }) => may.has(call?.method ?? ""));
  return (
    <section>
      <h2>What helps</h2>
      <ul className={classes.commands}>
        {nextCommands.map((next) => (
          <li key={next.command}>
            <div>
              <code>{next.command}</code>
              <div className="dim">{next.why}</div>
            </div>
            <span className={classes.buttons}>
              {canAct && may.has(next.call?.method ?? "") && (
                <Button
                  size={next === first ? "xs" : "compact-xs"}
                  variant={next === first ? "filled" : "default"}
                  aria-label={`Do it: ${next.command}`}
                  onClick={() => setChosen(next)}
                >
                  Do it …
                </Button>
              )}
              <CopyButton text={next.command} what={next.command} />
            </span>
          </li>
        ))}
      </ul>
      <Suspense fallback={null}>
        {chosen && <ExplainedAction next={chosen} onClose={() => setChosen(undefined)} />}
      </Suspense>
    </section>
  );
}

/** By the lifecycle's own table. */
function StateMeaning({ kind, state }: { readonly kind: string; readonly state: string }) {
  const { data: lifecycles } = useLifecycles();
  const row = useStateOf(kind, state);
  if (!row) return null;
  const next = (lifecycles?.get(kind)?.transitions ?? []).filter(
    ({ from, failure, stays, to }) => from === state && !failure && !stays && to !== "",
  );
  return (
    <section>
      <h2>{state}</h2>
      <p>{row.doc}</p>
      {next.length > 0 && (
        <p className="dim">
          leads to {next.map(({ to, trigger }) => `${to} (${trigger.replaceAll("_", " ")})`).join(", ")}
        </p>
      )}
    </section>
  );
}
