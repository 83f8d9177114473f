import { Popover } from "@mantine/core";
import { useState } from "react";
import { Explanation } from "./explanation.tsx";
import classes from "./state-chip.module.css";
import { Chip, type StateChipProps } from "./state-chip.tsx";

/** A chip with its explanation, which is open when it comes: somebody has pressed for it. */
export function ExplainedChip(props: StateChipProps) {
  const { kind, id, state } = props;
  const [isOpen, setOpen] = useState(true);
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-start" width={440} shadow="md" trapFocus withinPortal>
      <Popover.Target>
        <Chip {...props} onPress={() => setOpen(!isOpen)} />
      </Popover.Target>
      <Popover.Dropdown onClick={(event) => event.stopPropagation()} className={classes.explanation ?? ""}>
        {isOpen && <Explanation kind={kind} id={id} state={state} />}
      </Popover.Dropdown>
    </Popover>
  );
}
