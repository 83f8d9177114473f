import { Kbd } from "@mantine/core";
import { useState } from "react";
import { activeKeys } from "./keys.ts";
import { PlainDialog } from "./plain-dialog.tsx";

export function KeyHelp({ onClose }: { readonly onClose: () => void }) {
  const [keys] = useState(activeKeys);
  return (
    <PlainDialog label="Keys" onClose={onClose}>
      <h1>Keys</h1>
      <table style={{ marginTop: 16 }}>
        <tbody>
          {keys.map(({ key, does }) => (
            <tr key={key}>
              <td style={{ paddingRight: 16, paddingBottom: 8 }}>
                <Kbd>{key.replace("Control+", "Ctrl ")}</Kbd>
              </td>
              <td style={{ paddingBottom: 8 }}>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </PlainDialog>
  );
}
