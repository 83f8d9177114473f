import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { UnstyledButton } from "@mantine/core";
import { lazy, type Ref, Suspense, useState } from "react";
import { useStateOf } from "../api/lifecycles.ts";
import { toMillis } from "../api/times.ts";
import { useNow } from "../live/use-now.ts";
import { type Standing, TONE_WORDS, toneOf } from "../tone/tone.ts";
import { ToneIcon } from "../tone/tone-icon.tsx";
import classes from "./state-chip.module.css";

/** What opens beside a chip loads when somebody presses one: lists have very many of them. */
const ExplainedChip = lazy(async () => ({ default: (await import("./explained-chip.tsx")).ExplainedChip }));

export interface StateChipProps extends Pick<Standing, "isWaiting" | "isFailing" | "needsPerson"> {
  readonly kind: string;
  readonly id: string;
  /** As the API spells it. */
  readonly state: string;
  readonly since?: Timestamp | undefined;
}

/** A state in its tone. Pressed, it says since when, why, what it waits for and what helps: the server's own explanation. */
export function StateChip(props: StateChipProps) {
  const [isWanted, setWanted] = useState(false);
  const chip = <Chip {...props} onPress={() => setWanted(true)} />;
  if (!isWanted) return chip;
  return (
    <Suspense fallback={chip}>
      <ExplainedChip {...props} />
    </Suspense>
  );
}

interface ChipProps extends StateChipProps {
  readonly onPress: () => void;
  /** What opens something beside it has to find it. */
  readonly ref?: Ref<HTMLButtonElement>;
}

export function Chip({ kind, id: _, state, since, onPress, ref, ...more }: ChipProps) {
  const { isWaiting, isFailing, needsPerson, ...target } = more;
  const flags = {
    ...(isWaiting && { isWaiting }),
    ...(isFailing && { isFailing }),
    ...(needsPerson && { needsPerson }),
  };
  const tone = useTone({ kind, state, since, ...flags });
  return (
    <UnstyledButton
      {...target}
      {...(ref && { ref })}
      className={classes.chip}
      data-tone={tone}
      data-explain
      aria-label={`${state}, ${TONE_WORDS[tone]}; explain`}
      onClick={(event) => {
        event.stopPropagation();
        onPress();
      }}
    >
      <ToneIcon tone={tone} />
      {state}
    </UnstyledButton>
  );
}

/** The tone of a state, as its lifecycle's table and its age have it. */
function useTone({
  kind,
  state,
  since,
  ...flags
}: Pick<StateChipProps, "kind" | "state" | "since" | "isWaiting" | "isFailing" | "needsPerson">) {
  const now = useNow();
  return toneOf({ state: useStateOf(kind, state), since: toMillis(since), now, ...flags });
}
