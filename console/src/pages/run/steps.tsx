import {
  type Run,
  type StepStatus,
  StepStatus_State,
  StepStatus_StateSchema,
} from "../../../../contract/baremetal/v1/baremetal_pb.js";
import type { StepDetail } from "../../../../contract/millwright/v1/run_pb.js";
import { enumName } from "../../api/enum-names.ts";
import { harmless } from "../../api/hostile-text.ts";
import { spanText, toMillis } from "../../api/times.ts";
import { useNow } from "../../live/use-now.ts";
import { Age } from "../../parts/age.tsx";
import type { Tone } from "../../tone/tone.ts";
import { ToneIcon } from "../../tone/tone-icon.tsx";
import classes from "./steps.module.css";
import type { Usual } from "./usual-durations.ts";

interface StepsProps {
  readonly run: Run;
  readonly details: readonly StepDetail[];
  /** By the names of steps. */
  readonly usual: ReadonlyMap<string, Usual>;
  readonly onShowLog: (step: string, hasFailed: boolean) => void;
}

/** What was done, what is being done and what is left, in its order: how long each took against the usual, and what it said at its end. */
export function Steps({ run, details, usual, onShowLog }: StepsProps) {
  const now = useNow();
  const reached = run.steps.map((step, index) => ({ step, detail: details[index] }));
  const names = new Set(run.steps.map(({ name }) => name));
  const left = (run.plan?.steps ?? []).filter(({ name }) => !names.has(name));
  const longest = Math.max(
    1,
    ...run.steps.map((step) => spanOf(step, now) ?? 0),
    ...[...usual.values()].map(({ p95 }) => p95),
  );
  return (
    <ol className={classes.steps}>
      {reached.map(({ step, detail }) => (
        <Step
          key={`${step.name} ${detail?.round ?? 1}`}
          {...{ step, detail, longest, now, onShowLog }}
          usual={usual.get(step.name)}
        />
      ))}
      {left.map(({ name }) => (
        <li key={name} className={classes.step} data-left>
          <span className={classes.name}>{name}</span>
          <Timing span={undefined} usual={usual.get(name)} longest={longest} says="" />
          <span className="dim">not begun</span>
        </li>
      ))}
    </ol>
  );
}

interface StepProps {
  readonly step: StepStatus;
  readonly detail: StepDetail | undefined;
  readonly usual: Usual | undefined;
  readonly longest: number;
  readonly now: number;
  readonly onShowLog: StepsProps["onShowLog"];
}

function Step({ step, detail, usual, longest, now, onShowLog }: StepProps) {
  const span = step.carriedOver ? undefined : spanOf(step, now);
  const tone = toneOfStep(step);
  const hasFailed = step.state === StepStatus_State.FAILED;
  return (
    <li className={classes.step} data-tone={tone}>
      <span className={classes.name}>
        <ToneIcon tone={tone} label={enumName(StepStatus_StateSchema, step.state)} />
        <button
          type="button"
          className={classes.place}
          title="Show it in the log"
          onClick={() => onShowLog(step.name, hasFailed)}
        >
          {step.name}
        </button>
        {(detail?.round ?? 1) > 1 && <span className="dim"> round {detail?.round}</span>}
      </span>
      <Timing span={span} usual={usual} longest={longest} says={step.carriedOver ? "proved before" : ""} />
      <span className={classes.says}>
        {detail?.skipped && <span className="dim">not needed: </span>}
        {harmless(step.message)}
        {step.retryCount > 0 && (
          <span className={classes.attempts}>
            {step.retryCount} failed {step.retryCount === 1 ? "attempt" : "attempts"}
          </span>
        )}
        {step.nextAttemptAt && (
          <span className="dim"> next attempt in {spanText((toMillis(step.nextAttemptAt) ?? 0) - now)}</span>
        )}
        {detail?.cause && detail.cause.code !== "" && <code className={classes.cause}>{detail.cause.code}</code>}
        <Receipt detail={detail} />
        {step.state === StepStatus_State.SUCCEEDED && step.finishedAt && (
          <span className={classes.proved}>
            proved <Age at={step.finishedAt} ago />
          </span>
        )}
      </span>
    </li>
  );
}

/** What the device answered, what a step found that is there to find something, and of which things it says what. */
function Receipt({ detail }: { readonly detail: StepDetail | undefined }) {
  const { verdict = "", receipt = {} } = detail ?? {};
  const all = Object.entries(receipt);
  const facts = all.flatMap(([name, value]) =>
    typeof value === "object" ? [] : [`${name.replaceAll("_", " ")} ${harmless(String(value))}`],
  );
  const said = [...(verdict === "" ? [] : [`found: ${harmless(verdict)}`]), ...facts];
  const ofThings = all.flatMap(([name, value]) =>
    value === null || typeof value !== "object" || Array.isArray(value) ? [] : [[name, Object.entries(value)] as const],
  );
  return (
    <>
      {said.length > 0 && <span className={classes.receipt}>{said.join(", ")}</span>}
      {ofThings.map(([name, things]) => (
        <ul key={name} className={classes.ofThings} aria-label={name.replaceAll("_", " ")}>
          {things.map(([id, why]) => (
            <li key={id}>
              <code>{harmless(id)}</code> {name.replaceAll("_", " ")}: {harmless(String(why))}
            </li>
          ))}
        </ul>
      ))}
    </>
  );
}

interface TimingProps {
  readonly span: number | undefined;
  readonly usual: Usual | undefined;
  readonly longest: number;
  readonly says: string;
}

/** How long it took or takes, above the half and the 95 % of earlier ones: longer than those is marked. */
function Timing({ span, usual, longest, says }: TimingProps) {
  const share = (ms: number) => `${(ms / longest) * 100}%`;
  const took = says || (span === undefined ? "" : spanText(span));
  const isLong = span !== undefined && usual !== undefined && span > usual.p95;
  return (
    <span className={classes.time}>
      <span className={classes.track}>
        {span !== undefined && (
          <span className={classes.bar} data-long={isLong || undefined} style={{ width: share(span) }} />
        )}
        {usual && (
          <span
            className={classes.usual}
            style={{ left: share(usual.p50), right: `calc(100% - ${share(usual.p95)})` }}
          />
        )}
      </span>
      <span className={classes.span}>
        {took !== "" && <span>{took}</span>}
        {usual && (
          <span className="dim" title={`of ${usual.samples}, half took ${spanText(usual.p50)} at most`}>
            {isLong ? "longer than 95 %, usually " : "usually "}
            {spanText(usual.p50)}, 95 % in {spanText(usual.p95)}
          </span>
        )}
      </span>
    </span>
  );
}

function spanOf({ startedAt, finishedAt }: StepStatus, now: number): number | undefined {
  const began = toMillis(startedAt);
  return began === undefined ? undefined : Math.max(0, (toMillis(finishedAt) ?? now) - began);
}

const TONES: Readonly<Partial<Record<StepStatus_State, Tone>>> = {
  [StepStatus_State.WAITING]: "waiting",
  [StepStatus_State.RUNNING]: "working",
  [StepStatus_State.FAILED]: "trouble",
};
const toneOfStep = ({ state }: StepStatus): Tone => TONES[state] ?? "calm";
