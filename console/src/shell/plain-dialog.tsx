import { type ReactNode, useEffect, useRef } from "react";
import classes from "./plain-dialog.module.css";

interface PlainDialogProps {
  readonly label: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** The browser's own dialog: it keeps the focus, gives it back, and closes on Escape. What must be there at once costs no library. */
export function PlainDialog({ label, onClose, children }: PlainDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const { current } = dialog;
    current?.showModal();
    return () => current?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it
    <dialog
      ref={dialog}
      className={classes.dialog}
      aria-label={label}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div className={classes.inside}>{children}</div>
    </dialog>
  );
}
