from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("memories", "0024_numbers_and_signs")]

    operations = [migrations.RemoveField("chunk", "category")]
