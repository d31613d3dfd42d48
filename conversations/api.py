"""`/api/v1/conversations`: conversations, their messages and working memory."""

from typing import Annotated

from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from conversations.listing import RECENT, SPOKEN
from conversations.models import Conversation, Message, MessageRole
from conversations.store import (
    ConversationDraft,
    MessageDrafts,
    add_messages,
    close,
    conversations_of,
    find_conversation,
    messages_of,
    open_conversation,
)
from conversations.working_memory import context_of
from memories.api.opening import from_body, from_query
from memories.draft import Name, Short
from memories.filters import NotEmpty
from memories.paging import name_of_list, part_of_list
from memoryconsole.endpoints import Endpoint, Nothing, Paging
from memoryconsole.presenting import Id, PageJson, When, one_of, when
from memoryconsole.schema import ErrorJson, documented


class ConversationsQuery(Paging):
    """Filters of the list; one that is left out matches every conversation."""

    external_id: Annotated[Name | None, NotEmpty] = None
    channel: Annotated[Short | None, NotEmpty] = None
    user_id: Annotated[Name | None, NotEmpty] = None

    def filters(self) -> dict[str, str]:
        return self.model_dump(exclude=set(Paging.model_fields), exclude_none=True)


class ConversationJson(TypedDict):
    id: Id
    instanceId: str
    externalId: str | None
    channel: str | None
    userId: str | None
    title: str | None
    timeZone: str
    messageCount: int
    createdAt: When
    lastMessageAt: When
    closedAt: When | None


class MessageJson(TypedDict):
    id: Id
    conversationId: Id
    position: int
    role: Annotated[str, one_of(MessageRole.values)]
    content: str
    externalId: str | None
    createdAt: When


class ConversationsJson(PageJson):
    conversations: list[ConversationJson]


class OneConversationJson(TypedDict):
    conversation: ConversationJson


class TranscriptJson(PageJson):
    conversation: ConversationJson
    messages: list[MessageJson]


class MessagesJson(TypedDict):
    messages: list[MessageJson]


class ContextJson(TypedDict):
    conversation: ConversationJson
    summary: str | None
    summarisedThrough: int
    messages: list[MessageJson]


class Conversations(Endpoint):
    @documented(
        "listConversations",
        "List conversations, the one with the latest message first",
        query=ConversationsQuery,
        answers={200: ConversationsJson},
    )
    def get(self, request: Request) -> Response:
        scope, wanted = from_query(request, ConversationsQuery)
        filters = wanted.filters()
        rows = conversations_of(scope, **filters)
        name = name_of_list("conversations", scope.instance.id, filters)
        found, following = part_of_list(rows, RECENT, name, **wanted.place)
        answer: ConversationsJson = {
            **wanted.page_json(rows.count(), following),
            "conversations": [conversation_json(row, scope.instance.slug) for row in found],
        }
        return Response(answer)

    @documented(
        "openConversation",
        "Open a conversation, or find the one with this externalId",
        body=ConversationDraft,
        instance="body",
        answers={201: OneConversationJson, 200: OneConversationJson, 409: ErrorJson},
    )
    def post(self, request: Request) -> Response:
        scope, draft = from_body(request, ConversationDraft)
        opened = open_conversation(scope, draft)
        answer: OneConversationJson = {"conversation": conversation_json(opened.conversation, scope.instance.slug)}
        return Response(answer, status=201 if opened.is_new else 200)


class OneConversation(Endpoint):
    @documented(
        "getConversation",
        "Get a conversation with its messages, the first one first",
        query=Paging,
        answers={200: TranscriptJson},
    )
    def get(self, request: Request, id: str) -> Response:
        scope, wanted = from_query(request, Paging)
        conversation = find_conversation(scope, id)
        name = name_of_list("messages", scope.instance.id, {"conversation": conversation.id})
        rows = messages_of(scope, conversation)
        found, following = part_of_list(rows, SPOKEN, name, **wanted.place)
        answer: TranscriptJson = {
            "conversation": conversation_json(conversation, scope.instance.slug),
            **wanted.page_json(conversation.message_count, following),
            "messages": [message_json(message) for message in found],
        }
        return Response(answer)


class Messages(Endpoint):
    @documented(
        "addMessages",
        "Append messages to a conversation",
        body=MessageDrafts,
        instance="body",
        answers={201: MessagesJson, 409: ErrorJson},
    )
    def post(self, request: Request, id: str) -> Response:
        scope, drafts = from_body(request, MessageDrafts)
        messages = add_messages(scope, id, drafts.messages)
        answer: MessagesJson = {"messages": [message_json(message) for message in messages]}
        return Response(answer, status=201)


class Context(Endpoint):
    @documented(
        "getContext",
        "The working memory of a conversation: a summary of the older messages, and the last messages in full",
        answers={200: ContextJson},
    )
    def get(self, request: Request, id: str) -> Response:
        scope, _ = from_query(request, Nothing)
        conversation = find_conversation(scope, id)
        context = context_of(scope, conversation)
        answer: ContextJson = {
            "conversation": conversation_json(conversation, scope.instance.slug),
            "summary": context.summary or None,
            "summarisedThrough": context.summarised_through,
            "messages": [message_json(message) for message in context.messages],
        }
        return Response(answer)


class Closing(Endpoint):
    @documented(
        "closeConversation",
        "Close a conversation, so that its episode is stored now; another message opens it again",
        body=Nothing,
        instance="body",
        answers={200: OneConversationJson},
    )
    def post(self, request: Request, id: str) -> Response:
        scope, _ = from_body(request, Nothing)
        answer: OneConversationJson = {"conversation": conversation_json(close(scope, id), scope.instance.slug)}
        return Response(answer)


def conversation_json(conversation: Conversation, instance: str) -> ConversationJson:
    return {
        "id": str(conversation.id),
        "instanceId": instance,
        "externalId": conversation.external_id or None,
        "channel": conversation.channel or None,
        "userId": conversation.owner or None,
        "title": conversation.title or None,
        "timeZone": conversation.time_zone or "UTC",
        "messageCount": conversation.message_count,
        "createdAt": when(conversation.created_at),
        "lastMessageAt": when(conversation.last_message_at),
        "closedAt": when(conversation.closed_at) if conversation.closed_at else None,
    }


def message_json(message: Message) -> MessageJson:
    return {
        "id": str(message.id),
        "conversationId": str(message.conversation_id),
        "position": message.position,
        "role": message.role,
        "content": message.content,
        "externalId": message.external_id or None,
        "createdAt": when(message.created_at),
    }
