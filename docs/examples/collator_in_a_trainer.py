"""Whole-word and span masks of Paribus in the Trainer of transformers, and in a loop of your own."""

# %% Any fast tokenizer: WordPiece here, byte-level BPE and Unigram work the same way
from pathlib import Path

from tokenizers import BertWordPieceTokenizer
from torch.utils.data import DataLoader
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

import paribus

text = [line for line in Path(paribus.__file__).read_text().split(".") if len(line) > 40] * 4
trained = BertWordPieceTokenizer()
trained.train_from_iterator(text, vocab_size=200, show_progress=False)
names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=trained._tokenizer, **{f"{role}_token": name for role, name in names.items()}
)
data = [{"input_ids": tokenizer(line, truncation=True, max_length=64)["input_ids"]} for line in text]

# %% In the Trainer: `follow` tells the collator its epochs, so that every epoch has new masks
collator = paribus.collators.mask_spans(tokenizer, rate=0.15, seed=0)
config = BertConfig(
    vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
)
arguments = TrainingArguments(
    "out",
    num_train_epochs=2,
    per_device_train_batch_size=8,
    eval_strategy="epoch",
    save_strategy="epoch",
    report_to="none",
    use_cpu=True,
)
trainer = Trainer(
    BertForMaskedLM(config),
    arguments,
    train_dataset=data,
    eval_dataset=data[:16],
    data_collator=collator,
    callbacks=[collator.follow()],
)
print("loss", trainer.train().training_loss)

# %% A checkpoint holds the model and its tokenizer; evaluated with masks that never change
last = sorted(Path("out").glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))[-1]
model, tokenizer = AutoModelForMaskedLM.from_pretrained(last), AutoTokenizer.from_pretrained(last)
fixed = paribus.collators.mask_spans(tokenizer, rate=0.15, seed=1, masks="static")
print("loaded", Trainer(model, arguments, eval_dataset=data[:16], data_collator=fixed).evaluate()["eval_loss"])

# %% In a loop of your own
collator = paribus.collators.mask_whole_words(tokenizer, rate=0.15, seed=0, masks=10)  # ten masks in turn
loader = DataLoader(data, batch_size=8, collate_fn=collator)
for epoch in range(2):
    collator.set_epoch(epoch)
    for batch in loader:
        masked = int((batch["labels"] != -100).sum())
    print("epoch", epoch, "masked tokens in the last batch:", masked)
