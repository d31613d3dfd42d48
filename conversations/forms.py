"""The form that tries extraction on a conversation."""

from collections.abc import Sequence
from typing import Any

from django import forms

from conversations.models import Conversation
from memoryconsole.forms import set_choices

MAX_PASTED = 50_000
EXAMPLE = "user: I moved to Munich yesterday, and I only drink decaf.\nassistant: Noted!"


class TryForm(forms.Form):
    """A pasted text or one of the conversations. If both are given, the text is used."""

    text = forms.CharField(
        required=False,
        max_length=MAX_PASTED,
        label="Paste a conversation",
        help_text="A line that begins with “user:” or “assistant:” starts the next message.",
        widget=forms.Textarea(attrs={"rows": 8, "placeholder": EXAMPLE}),
    )
    user = forms.CharField(
        required=False,
        max_length=200,
        label="End user",
        help_text="Who says it: only what is known of them is compared.",
    )
    conversation = forms.ChoiceField(
        required=False,
        label="Or pick a conversation",
        error_messages={"invalid_choice": "This conversation is not there to choose any more. Load the page again."},
    )

    def __init__(self, *args: Any, conversations: Sequence[Conversation], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(str(each.id), f"{each} ({each.message_count})") for each in conversations]
        set_choices(self, "conversation", [("", "–"), *choices])

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not self.errors and not data.get("text", "").strip() and not data.get("conversation"):
            self.add_error("text", "Paste something that was said, or pick a conversation.")
        return data
