import { Button } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { nameOfMethod } from "../api/method-name.ts";
import { useMe } from "../shell/me.tsx";
import type { Action } from "./action.ts";

const ActionDialog = lazy(async () => ({ default: (await import("./action-dialog.tsx")).ActionDialog }));

const ActionMenu = lazy(async () => ({ default: (await import("./action-menu.tsx")).ActionMenu }));

interface ActionBarProps {
  /** The first is the one that helps most. */
  readonly actions: readonly Action[];
  /** How many have a button of their own; the others are in a menu. */
  readonly shown?: number;
  /** Another button beside it is the one to press. */
  readonly isSecondary?: boolean;
}

/** What its reader may have done. Nothing is done before a dialog has said what. */
export function ActionBar({ actions, shown = 2, isSecondary = false }: ActionBarProps) {
  const { may } = useMe();
  const [chosen, setChosen] = useState<Action | undefined>();
  const offered = actions.filter(({ method }) => may.has(nameOfMethod(method)));
  const [first, rest] = [offered.slice(0, shown), offered.slice(shown)];
  return (
    <>
      {first.map((action, index) => (
        <Button
          key={action.label}
          size="xs"
          variant={index === 0 && !action.isDangerous && !isSecondary ? "filled" : "default"}
          onClick={() => setChosen(action)}
        >
          {action.label} …
        </Button>
      ))}
      {rest.length > 0 && <MoreActions actions={rest} onChoose={setChosen} />}
      <Suspense fallback={null}>
        {chosen && <ActionDialog action={chosen} onClose={() => setChosen(undefined)} />}
      </Suspense>
    </>
  );
}

interface MoreActionsProps {
  readonly actions: readonly Action[];
  readonly onChoose: (action: Action) => void;
}

/** The menu loads when somebody presses for it. */
function MoreActions(props: MoreActionsProps) {
  const [isWanted, setWanted] = useState(false);
  const closed = (
    <Button size="xs" variant="default" aria-haspopup="menu" onClick={() => setWanted(true)}>
      More
    </Button>
  );
  if (!isWanted) return closed;
  return (
    <Suspense fallback={closed}>
      <ActionMenu {...props} />
    </Suspense>
  );
}
