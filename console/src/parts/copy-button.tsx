import { UnstyledButton } from "@mantine/core";
import { useState } from "react";
import classes from "./copy-button.module.css";

interface CopyButtonProps {
  readonly text: string;
  /** What is copied, for those who do not see it; absent: the label says so. */
  readonly what?: string;
  readonly label?: string;
}

export function CopyButton({ text, what, label = "copy" }: CopyButtonProps) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    const isCopied = await copyText(text);
    setSaid(isCopied ? "copied" : "not copied");
    window.setTimeout(() => setSaid(""), 1_500);
  };
  return (
    <UnstyledButton
      className={classes.copy}
      aria-label={what && `${said || label} ${what}`}
      onClick={() => void copy()}
    >
      <span aria-live="polite">{said || label}</span>
    </UnstyledButton>
  );
}

/** Browsers give their clipboard to pages alone that came over a way they trust; elsewhere the old way has to do. */
async function copyText(text: string): Promise<boolean> {
  if (window.isSecureContext)
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  return isCopied;
}
