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

interface StepsProps {
  readonly run: Run;
  readonly details: readonly StepDetail[];
}

/** What was done, what is being done and what is left, in its order: how long each took, and what it said at its end. */
export function Steps({ run, details }: StepsProps) {
  const now = useNow();
  const reached = run.steps.map((step, index) => ({ step, detail: details[index] }));
  const names = new Set(run.steps.map(({ name }) => name));
  const left = (run.plan?.steps ?? []).filter(({ name }) => !names.has(name));
  const longest = Math.max(1, ...run.steps.map((step) => spanOf(step, now) ?? 0));
  return (
    <ol className={classes.steps}>
      {reached.map(({ step, detail }) => (
        <Step key={`${step.name} ${detail?.round ?? 1}`} step={step} detail={detail} longest={longest} now={now} />
      ))}
      {left.map(({ name }) => (
        <li key={name} className={classes.step} data-left>
          <span className={classes.name}>{name}</span>
          <span className="dim">not begun</span>
        </li>
      ))}
    </ol>
  );
}

interface StepProps {
  readonly step: StepStatus;
  readonly detail: StepDetail | undefined;
  readonly longest: number;
  readonly now: number;
}

function Step({ step, detail, longest, now }: StepProps) {
  const span = spanOf(step, now);
  const tone = toneOfStep(step);
  return (
    <li className={classes.step} data-tone={tone}>
      <span className={classes.name}>
        <ToneIcon tone={tone} label={enumName(StepStatus_StateSchema, step.state)} /> {step.name}
        {(detail?.round ?? 1) > 1 && <span className="dim"> round {detail?.round}</span>}
      </span>
      <span className={classes.time}>
        <span className={classes.bar} style={{ width: `${((span ?? 0) / longest) * 100}%` }} />
        <span className={classes.span}>
          {step.carriedOver ? "proved before" : span === undefined ? "" : spanText(span)}
        </span>
      </span>
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
        {step.state === StepStatus_State.SUCCEEDED && step.finishedAt && (
          <span className={classes.proved}>
            proved <Age at={step.finishedAt} ago />
          </span>
        )}
      </span>
    </li>
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
