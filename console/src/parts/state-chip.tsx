import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { Popover, UnstyledButton } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { useStateOf } from "../api/lifecycles.ts";
import { toMillis } from "../api/times.ts";
import { useNow } from "../live/use-now.ts";
import { type Standing, TONE_WORDS, toneOf } from "../tone/tone.ts";
import { ToneIcon } from "../tone/tone-icon.tsx";
import classes from "./state-chip.module.css";

const Explanation = lazy(async () => ({ default: (await import("./explanation.tsx")).Explanation }));

interface StateChipProps extends Pick<Standing, "isWaiting" | "isFailing" | "needsPerson"> {
  readonly kind: string;
  readonly id: string;
  /** As the API spells it. */
  readonly state: string;
  readonly since?: Timestamp | undefined;
}

/** A state in its tone. Pressed, it says since when, why, what it waits for and what helps: the server's own explanation. */
export function StateChip({ kind, id, state, since, ...flags }: StateChipProps) {
  const [isOpen, setOpen] = useState(false);
  const tone = useTone({ kind, state, since, ...flags });
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-start" width={440} shadow="md" trapFocus withinPortal>
      <Popover.Target>
        <UnstyledButton
          className={classes.chip}
          data-tone={tone}
          data-explain
          aria-label={`${state}, ${TONE_WORDS[tone]}; explain`}
          onClick={(event) => {
            event.stopPropagation();
            setOpen(!isOpen);
          }}
        >
          <ToneIcon tone={tone} />
          {state}
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown onClick={(event) => event.stopPropagation()} className={classes.explanation ?? ""}>
        <Suspense fallback={<p className="dim">Reading …</p>}>
          {isOpen && <Explanation kind={kind} id={id} state={state} />}
        </Suspense>
      </Popover.Dropdown>
    </Popover>
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
