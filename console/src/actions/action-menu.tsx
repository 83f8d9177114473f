import { Button, Menu } from "@mantine/core";
import type { Action } from "./action.ts";

interface ActionMenuProps {
  readonly actions: readonly Action[];
  readonly onChoose: (action: Action) => void;
}

/** The actions that have no button of their own. It is open when it comes: somebody has pressed for it. */
export const ActionMenu = ({ actions, onChoose }: ActionMenuProps) => (
  <Menu position="bottom-end" withinPortal defaultOpened>
    <Menu.Target>
      <Button size="xs" variant="default">
        More
      </Button>
    </Menu.Target>
    <Menu.Dropdown>
      {actions.map((action) => (
        <Menu.Item key={action.label} onClick={() => onChoose(action)}>
          {action.label} …
        </Menu.Item>
      ))}
    </Menu.Dropdown>
  </Menu>
);
