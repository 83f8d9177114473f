import { Button, Menu } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { nameOfMethod } from "../api/method-name.ts";
import { useMe } from "../shell/me.tsx";
import type { Action } from "./action.ts";

const ActionDialog = lazy(async () => ({ default: (await import("./action-dialog.tsx")).ActionDialog }));

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
      {rest.length > 0 && (
        <Menu position="bottom-end" withinPortal>
          <Menu.Target>
            <Button size="xs" variant="default">
              More
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {rest.map((action) => (
              <Menu.Item key={action.label} onClick={() => setChosen(action)}>
                {action.label} …
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
      )}
      <Suspense fallback={null}>
        {chosen && <ActionDialog action={chosen} onClose={() => setChosen(undefined)} />}
      </Suspense>
    </>
  );
}
